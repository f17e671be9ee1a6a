-- Read the name of the strategy that ordered the jobs.
SELECT value FROM betimes_meta WHERE name = 'strategy';
