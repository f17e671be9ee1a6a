-- Count who holds permits, by gates: attempts that run, but for those of dead workers, and code that is left running.
SELECT gates, count(*) FROM betimes_job
WHERE worker IS NOT NULL AND gates IS NOT NULL
    AND worker <> ALL (ARRAY(SELECT id FROM betimes_worker WHERE is_dead = 1))
GROUP BY gates
UNION ALL
SELECT gates, 1 FROM betimes_permit;
