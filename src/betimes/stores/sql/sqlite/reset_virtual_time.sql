-- Begin the virtual time of fair share anew.
UPDATE betimes_meta SET value = 0 WHERE name = 'virtual_time';
