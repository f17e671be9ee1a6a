-- Remember the name of the strategy.
INSERT INTO betimes_meta (name, value) VALUES ('strategy', $1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
