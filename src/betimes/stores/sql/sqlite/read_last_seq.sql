-- Read the number of the newest job that ever was.
SELECT value FROM betimes_meta WHERE name = 'last_seq';
