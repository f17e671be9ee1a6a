-- Read the virtual time of fair share.
SELECT value::bigint FROM betimes_meta WHERE name = 'virtual_time';
