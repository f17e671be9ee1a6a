-- Forget tenants that stand no worse than a new one.
DELETE FROM betimes_tenant WHERE name IN (SELECT name FROM betimes_tenant WHERE finish <= ? LIMIT ?);
