-- Tell which of these numbers (a JSON array) are of live jobs.
SELECT seq FROM betimes_job WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint));
