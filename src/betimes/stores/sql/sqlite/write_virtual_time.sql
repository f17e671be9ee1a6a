-- Write the virtual time of fair share.
UPDATE betimes_meta SET value = ? WHERE name = 'virtual_time';
