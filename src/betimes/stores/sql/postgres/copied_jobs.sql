-- Tell which of these numbers (a JSON array) lie among the ended, but still among the live.
SELECT seq FROM betimes_finished
WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
    AND EXISTS (SELECT FROM betimes_job AS job WHERE job.seq = betimes_finished.seq);
