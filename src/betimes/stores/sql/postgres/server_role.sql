-- Name this role; tell whether the schema is its own, and whether the server is a standby.
SELECT current_user::text, pg_catalog.pg_is_in_recovery(), coalesce(bool_and(
    pg_catalog.pg_has_role(class.relowner, 'USAGE')
), false)
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE space.nspname = $1::text AND class.relkind IN ('r', 'p') AND class.relname LIKE 'betimes\_%';
