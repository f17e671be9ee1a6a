-- Tell which of these rights this role lacks: kinds, the things that they are about, and columns, for one that is for a column only.
SELECT needed.kind, needed.thing
FROM unnest($1::text[], $2::text[], $3::text[]) AS needed (kind, thing, field)
WHERE NOT CASE
    WHEN needed.kind = 'USAGE' THEN pg_catalog.has_sequence_privilege(needed.thing, 'USAGE')
    WHEN needed.field IS NOT NULL THEN pg_catalog.has_column_privilege(needed.thing, needed.field, needed.kind)
    ELSE pg_catalog.has_table_privilege(needed.thing, needed.kind)
END
ORDER BY needed.thing, needed.kind;
