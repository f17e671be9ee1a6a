-- Claim the first claimable jobs without gates of queues and lanes, each lane for what it has free, in the order.
-- Left out are those to be held back (a JSON array of ids), and what stands before a mark in the order.
WITH next AS MATERIALIZED (
    SELECT ready.seq, ready.sort_key, place.lane, place.free
    FROM unnest($1::text[], $2::text[], $3::bigint[], $8::bigint[], $9::bigint[])
        AS place (queue, lane, free, after_key, after_seq)
    CROSS JOIN LATERAL (
        SELECT seq, sort_key FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = place.queue AND lane = place.lane
            AND (sort_key, seq) > (place.after_key, place.after_seq)
            AND (tenant IS NULL OR sort_key <> 9223372036854775807)
            AND (expires_at IS NULL OR expires_at > $6::bigint OR started_at IS NOT NULL)
            AND id <> ALL (ARRAY(SELECT json_array_elements_text($7::json)))
        ORDER BY sort_key, seq
        LIMIT place.free
        FOR UPDATE SKIP LOCKED
    ) AS ready
    WHERE place.queue <> ALL (ARRAY(SELECT queue FROM betimes_paused_queue))
),
picked AS MATERIALIZED (
    SELECT seq FROM (
        SELECT seq, sort_key, free, row_number() OVER (PARTITION BY lane ORDER BY sort_key, seq) AS place FROM next
    ) AS ranked
    WHERE place <= free
    ORDER BY sort_key, seq
    LIMIT $4
)
UPDATE betimes_job
SET status = 'running', attempt = attempt + 1, fence = fence + 1, worker = $5, started_at = $6::bigint
WHERE seq = ANY (ARRAY(SELECT seq FROM picked))
RETURNING seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    worker, started_at, NULL::bigint AS finished_at, expires_at, 0::bigint AS unmet, parked, cancel_requested, rare,
    NULL::text AS result, gates, tenant, awaited;
