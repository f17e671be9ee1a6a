-- Become the one who keeps the order of jobs with gates or tenants, until the transaction is over.
-- The answer is that this went well, and what time it is since.
SELECT waited IS NOT NULL, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (
    SELECT pg_advisory_xact_lock(hashtextextended('keep order', hashtextextended(current_schema(), 0)))::text AS waited
    OFFSET 0
) AS kept;
