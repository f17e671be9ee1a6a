-- List who holds permits: the attempts that run, but for those of dead workers, and code that is left running.
SELECT seq, id, worker, gates, started_at FROM betimes_job
WHERE worker IS NOT NULL AND gates IS NOT NULL
    AND worker <> ALL (ARRAY(SELECT id FROM betimes_worker WHERE is_dead = 1))
UNION ALL
SELECT
    seq,
    coalesce(
        (SELECT id FROM betimes_job WHERE seq = permit.seq),
        (SELECT id FROM betimes_finished WHERE seq = permit.seq),
        ''
    ),
    worker, gates, started_at
FROM betimes_permit AS permit;
