-- Forget tenants that stand no worse than a new one; none whose share is being spent just now.
DELETE FROM betimes_tenant
WHERE name = ANY (ARRAY(SELECT name FROM betimes_tenant WHERE finish <= $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED));
