-- Forget tenants that stand no worse than a new one.
DELETE FROM betimes_tenant
WHERE name = ANY (ARRAY(SELECT name FROM betimes_tenant WHERE finish <= $1::bigint LIMIT $2));
