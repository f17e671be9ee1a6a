-- Read who waits for these jobs (a JSON array of numbers).
SELECT parent, child, need FROM betimes_dependency WHERE parent IN (SELECT value FROM json_each(?))
ORDER BY parent, child;
