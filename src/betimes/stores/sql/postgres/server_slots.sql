-- Find the replication slot that keeps most from being cleared away: its name, and how many transactions it lags behind.
SELECT slot_name::text, greatest(age(xmin), age(catalog_xmin))::bigint AS lag
FROM pg_catalog.pg_replication_slots
WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
ORDER BY lag DESC
LIMIT 1;
