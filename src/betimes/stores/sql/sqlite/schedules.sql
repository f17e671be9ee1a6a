-- List schedules by id, behind one; all, or those whose last decided instant is later than one.
SELECT record FROM betimes_plan WHERE id > ?1 AND (?2 IS NULL OR last_fire_at > ?2) ORDER BY id LIMIT ?3;
