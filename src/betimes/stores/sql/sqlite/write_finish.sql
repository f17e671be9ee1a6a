-- Write the finish tags of tenants.
INSERT OR REPLACE INTO betimes_tenant (name, finish) VALUES (?, ?);
