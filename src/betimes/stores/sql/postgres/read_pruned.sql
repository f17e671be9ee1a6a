-- Read how many jobs have been forgotten so far.
SELECT value::bigint FROM betimes_meta WHERE name = 'pruned';
