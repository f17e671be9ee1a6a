-- Lock names until the transaction is over; always in the same order, so that two who do so never wait for each other.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT hashtextextended(name, hashtextextended(current_schema(), 0)) AS number
    FROM unnest($1::text[]) AS name
    ORDER BY number
)
SELECT pg_advisory_xact_lock(number) FROM wanted;
