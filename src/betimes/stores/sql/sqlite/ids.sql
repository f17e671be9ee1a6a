-- Read ids of live and ended jobs that begin with a prefix, in their order, each once.
SELECT id FROM betimes_job WHERE id >= :first AND id < :behind
UNION SELECT id FROM betimes_finished WHERE id >= :first AND id < :behind
ORDER BY id LIMIT :limit;
