-- Read settings of the server, as a session of this role begins with them; times in milliseconds.
SELECT name, reset_val
FROM pg_catalog.pg_settings
WHERE name = ANY(ARRAY[
    'server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'autovacuum', 'track_counts',
    'max_connections', 'superuser_reserved_connections', 'reserved_connections',
    'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'
]);
