-- Remember which jobs wait for which.
INSERT INTO betimes_dependency (parent, child, need)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]);
