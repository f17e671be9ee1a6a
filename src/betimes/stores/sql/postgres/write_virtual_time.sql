-- Move the virtual time of fair share on; it never goes back.
UPDATE betimes_meta SET value = greatest(value::bigint, $1::bigint) WHERE name = 'virtual_time';
