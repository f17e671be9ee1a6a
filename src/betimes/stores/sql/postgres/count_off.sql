-- Take away that these jobs wait for those: parents and children, of which nobody else has locked the children.
DELETE FROM betimes_dependency
WHERE (parent, child) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]));
