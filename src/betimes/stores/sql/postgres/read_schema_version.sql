-- Read which schema stands in the database, and the oldest version whose code works with it.
SELECT name, value::bigint FROM betimes_meta WHERE name IN ('schema_version', 'serves');
