-- Write how rates and breakers stand.
INSERT OR REPLACE INTO betimes_gate (key, full_at, tripped_at, opens_at) VALUES (?, ?, ?, ?);
