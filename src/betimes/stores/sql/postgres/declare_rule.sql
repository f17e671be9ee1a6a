-- Keep the terms that the code declares.
INSERT INTO betimes_rule (rule, declared) VALUES ($1, $2)
ON CONFLICT (rule) DO UPDATE SET declared = excluded.declared;
