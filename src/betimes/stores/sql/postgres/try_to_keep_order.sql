-- Become the one who keeps the order of jobs with gates or tenants, until the transaction is over, unless another does.
-- The answer is whether that went well, and what time it is since.
SELECT is_keeper, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (
    SELECT pg_try_advisory_xact_lock(hashtextextended('keep order', hashtextextended(current_schema(), 0))) AS is_keeper
    OFFSET 0
) AS tried;
