-- Take back the permits that a worker's code held beyond its jobs, but for those of attempts (a JSON array of [number, fence]).
DELETE FROM betimes_permit
WHERE worker = ?1
    AND (seq, fence) NOT IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?2))
RETURNING gates;
