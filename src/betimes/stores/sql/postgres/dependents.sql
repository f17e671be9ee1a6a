-- Read who waits for these jobs (a JSON array of numbers), and lock those who do; not those that others have locked.
-- Two whose last dependencies end at the same time must not each take the other for the one that is still to come.
SELECT dependency.parent, dependency.child, dependency.need
FROM betimes_dependency AS dependency JOIN betimes_job AS job ON job.seq = dependency.child
WHERE dependency.parent = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
ORDER BY dependency.parent, dependency.child
FOR UPDATE OF job SKIP LOCKED;
