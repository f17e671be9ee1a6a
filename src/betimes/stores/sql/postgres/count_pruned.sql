-- Count jobs that have been forgotten.
UPDATE betimes_meta SET value = value::bigint + $1::bigint WHERE name = 'pruned';
