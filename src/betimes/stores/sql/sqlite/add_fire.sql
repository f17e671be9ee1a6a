-- Remember a fire.
INSERT INTO betimes_fire (schedule, fire_at, seq) VALUES (?, ?, NULL);
