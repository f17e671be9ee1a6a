-- Find what has kept the longest from being cleared away, other than this session: a transaction, a prepared one.
SELECT kind, name, who, extract(epoch FROM clock_timestamp() - began)::double precision
FROM (
    SELECT 'transaction' AS kind, pid::text AS name, concat_ws(', ', usename, application_name, state) AS who,
        xact_start AS began
    FROM pg_catalog.pg_stat_activity
    WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL
        AND backend_type NOT IN ('autovacuum worker')
    UNION ALL
    SELECT 'prepared transaction', gid, owner, prepared
    FROM pg_catalog.pg_prepared_xacts
    WHERE database = current_database()
) AS found
ORDER BY began
LIMIT 1;
