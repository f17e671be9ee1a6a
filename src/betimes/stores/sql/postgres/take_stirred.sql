-- Take away what was noted for whoever keeps the order, and read it.
DELETE FROM betimes_stirred
WHERE number = ANY (ARRAY(SELECT number FROM betimes_stirred ORDER BY number LIMIT $1))
RETURNING queue, lane, name;
