-- Forget all tenants.
DELETE FROM betimes_tenant;
