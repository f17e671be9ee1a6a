-- Read rates and breakers that are not at rest, by their keys (a JSON array).
SELECT key, full_at, tripped_at, opens_at FROM betimes_gate
WHERE key = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
