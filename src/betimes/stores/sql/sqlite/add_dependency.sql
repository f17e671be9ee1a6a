-- Remember which jobs wait for which.
INSERT INTO betimes_dependency (parent, child, need) VALUES (?, ?, ?);
