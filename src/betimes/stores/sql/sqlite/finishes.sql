-- Read the finish tags of tenants (a JSON array of names).
SELECT name, finish FROM betimes_tenant WHERE name IN (SELECT value FROM json_each(?));
