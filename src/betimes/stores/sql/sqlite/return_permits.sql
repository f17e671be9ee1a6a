-- Take back the permits of attempts (a JSON array of [number, fence]) whose code has returned.
DELETE FROM betimes_permit
WHERE (seq, fence) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
RETURNING gates;
