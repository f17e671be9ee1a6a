-- Tell at which of these gates (a JSON array of keys) lines wait.
SELECT value FROM json_each(?) AS gate
WHERE EXISTS (SELECT 1 FROM betimes_line WHERE waits_at = gate.value);
