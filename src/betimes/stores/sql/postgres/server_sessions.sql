-- Count the clients' sessions on the server, and those of this database of which this role may see nothing else.
SELECT count(*), count(*) FILTER (WHERE datname = current_database() AND query = '<insufficient privilege>')
FROM pg_catalog.pg_stat_activity
WHERE backend_type IN ('client backend', 'walsender') OR (query = '<insufficient privilege>' AND datid IS NOT NULL);
