-- List all lines.
SELECT queue, lane, gates FROM betimes_line;
