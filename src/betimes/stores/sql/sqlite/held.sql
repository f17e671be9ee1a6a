-- Count who holds permits, by gates: attempts that run, but for those of dead workers, and code that is left running.
SELECT json_array(gates, count(*)) AS record FROM betimes_job
WHERE worker IS NOT NULL AND gates IS NOT NULL
    AND worker NOT IN (SELECT id FROM betimes_worker WHERE is_dead = 1)
GROUP BY gates
UNION ALL
SELECT json_array(gates, 1) FROM betimes_permit;
