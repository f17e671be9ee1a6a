-- Read ids of live and ended jobs that begin with a prefix, in their order, each once.
(SELECT DISTINCT id FROM betimes_job WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3)
UNION
(SELECT DISTINCT id FROM betimes_finished WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3)
ORDER BY id
LIMIT $3;
