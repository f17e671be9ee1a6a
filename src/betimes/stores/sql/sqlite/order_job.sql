-- Write the places of live jobs in another strategy's order.
WITH ordered (seq, sort_key, tenant) AS (
    VALUES (?, ?, ?)
)
UPDATE betimes_job
SET sort_key = ordered.sort_key,
    tenant = ordered.tenant
FROM ordered
WHERE betimes_job.seq = ordered.seq;
