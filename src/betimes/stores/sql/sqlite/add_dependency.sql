-- Remember that a job waits for another.
INSERT INTO betimes_dependency (parent, child, need) VALUES (?, ?, ?);
