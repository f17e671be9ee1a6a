-- Read the terms by which gates go now, by their rules (a JSON array).
SELECT rule, coalesce(changed, declared) FROM betimes_rule WHERE rule IN (SELECT value FROM json_each(?));
