-- List what stands in the file, whoever made it.
SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!';
