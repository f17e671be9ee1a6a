-- Read which schema stands in the database.
SELECT value::bigint FROM betimes_meta WHERE name = 'schema_version';
