-- Take away lines in which nobody is left (a JSON array of numbers).
DELETE FROM betimes_line WHERE id IN (SELECT value FROM json_each(?));
