-- Remember the name of the strategy.
INSERT OR REPLACE INTO betimes_meta (name, value) VALUES ('strategy', ?);
