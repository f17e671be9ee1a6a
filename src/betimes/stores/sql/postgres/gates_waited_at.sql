-- Tell at which of these gates (a JSON array of keys) lines wait.
SELECT gate.key FROM json_array_elements_text($1::json) AS gate (key)
WHERE EXISTS (SELECT FROM betimes_line WHERE waits_at = gate.key);
