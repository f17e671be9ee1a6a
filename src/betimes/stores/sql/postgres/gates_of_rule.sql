-- List the rates and breakers of a rule that are not at rest: its own key, and those with a value behind it.
SELECT key FROM betimes_gate
WHERE key = $1::text OR (key > $1::text || chr(9) AND key < $1::text || chr(10));
