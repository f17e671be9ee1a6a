-- Read those ended jobs that not all who wait for them have been told of, earliest first.
-- As they have ended last: somebody may have had one tried again meanwhile.
SELECT unsettled.parent, unsettled.id, coalesce(ended.status, unsettled.status), unsettled.ended_at
FROM betimes_unsettled AS unsettled LEFT JOIN betimes_finished AS ended ON ended.seq = unsettled.parent
WHERE NOT EXISTS (SELECT FROM betimes_job AS job WHERE job.seq = unsettled.parent)
ORDER BY unsettled.ended_at
LIMIT $1
FOR UPDATE OF unsettled SKIP LOCKED;
