-- Tell where a caller's connection leads to, and how its transaction and its settings stand.
SELECT
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
    to_regclass(format('%I.betimes_meta', $1::text))::oid::bigint,
    current_setting('transaction_isolation'),
    current_setting('transaction_read_only'),
    current_setting('client_encoding'),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    current_setting('search_path'),
    current_setting('enable_seqscan'),
    current_setting('enable_bitmapscan'),
    current_setting('jit');
