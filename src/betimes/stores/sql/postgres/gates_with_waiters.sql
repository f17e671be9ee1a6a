-- List the gates that are to be looked at some time for those that wait.
SELECT key FROM betimes_gate WHERE opens_at IS NOT NULL;
