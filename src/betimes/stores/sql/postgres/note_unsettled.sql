-- Note that jobs have ended of which not all who wait for them could be told.
INSERT INTO betimes_unsettled (parent, id, status, ended_at)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
ON CONFLICT (parent) DO NOTHING;
