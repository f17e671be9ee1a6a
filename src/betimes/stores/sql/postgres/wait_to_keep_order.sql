-- Become the one who keeps the order of jobs with gates or tenants, until the transaction is over.
SELECT pg_advisory_xact_lock(hashtextextended('keep order', hashtextextended(current_schema(), 0)));
