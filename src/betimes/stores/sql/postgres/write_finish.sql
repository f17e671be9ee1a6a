-- Write the finish tags of tenants.
INSERT INTO betimes_tenant (name, finish)
SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET finish = excluded.finish;
