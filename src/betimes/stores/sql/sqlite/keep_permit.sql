-- Remember attempts whose code still runs although their job does not.
INSERT OR REPLACE INTO betimes_permit (seq, fence, worker, gates, started_at) VALUES (?, ?, ?, ?, ?);
