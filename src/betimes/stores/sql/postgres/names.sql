-- List what stands in a schema, whoever made it.
SELECT class.relname::text
FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE space.nspname = $1::text;
