-- Read the virtual time of fair share.
SELECT value FROM betimes_meta WHERE name = 'virtual_time';
