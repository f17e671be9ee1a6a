-- Return numbers for so many new jobs; none comes again, whatever is pruned.
SELECT nextval('betimes_number') FROM generate_series(1, $1::bigint);
