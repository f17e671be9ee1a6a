-- List our tables: how large each is with its indexes, and how many rows of it live or are dead, as far as was counted.
SELECT class.relname::text, pg_catalog.pg_total_relation_size(class.oid)::bigint,
    coalesce(stat.n_live_tup, 0)::bigint, coalesce(stat.n_dead_tup, 0)::bigint
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
LEFT JOIN pg_catalog.pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE space.nspname = $1::text AND class.relkind IN ('r', 'p') AND class.relname LIKE 'betimes\_%'
ORDER BY 2 DESC, 1;
