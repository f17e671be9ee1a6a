-- Read live jobs in the order of submission, behind one.
SELECT * FROM betimes_live WHERE seq > $1::bigint ORDER BY seq LIMIT $2
FOR UPDATE;
