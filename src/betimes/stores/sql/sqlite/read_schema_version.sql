-- Read which schema stands in the file.
SELECT value FROM betimes_meta WHERE name = 'schema_version';
