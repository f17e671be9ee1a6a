-- Take away the row of an ended job that lives again.
DELETE FROM betimes_finished WHERE seq = ?;
