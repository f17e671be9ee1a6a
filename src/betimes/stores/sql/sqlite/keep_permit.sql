-- Keep the permits of attempts whose code is left running; those of workers that are dead hold none.
WITH kept (seq, fence, worker, gates, started_at) AS (
    VALUES (?, ?, ?, ?, ?)
)
INSERT OR REPLACE INTO betimes_permit (seq, fence, worker, gates, started_at)
SELECT seq, fence, worker, gates, started_at
FROM kept
WHERE EXISTS (SELECT 1 FROM betimes_worker WHERE id = kept.worker AND is_dead = 0);
