-- Tell whether this role may use a schema that is there.
SELECT pg_catalog.has_schema_privilege($1::text, 'USAGE');
