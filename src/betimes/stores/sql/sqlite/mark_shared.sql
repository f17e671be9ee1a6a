-- Note that connections which are not ours commit to this file.
INSERT INTO betimes_meta (name, value) VALUES ('is_shared', 1) ON CONFLICT DO NOTHING;
