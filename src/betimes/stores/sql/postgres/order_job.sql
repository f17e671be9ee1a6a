-- Write the places of live jobs in another strategy's order.
UPDATE betimes_job AS job
SET sort_key = ordered.sort_key,
    tenant = ordered.tenant
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS ordered (seq, sort_key, tenant)
WHERE job.seq = ANY ($1::bigint[]) AND job.seq = ordered.seq;
