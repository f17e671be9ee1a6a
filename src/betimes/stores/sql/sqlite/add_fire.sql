-- Remember what became of instants; one that was decided before stays as it was.
INSERT OR IGNORE INTO betimes_fire (
    schedule, at, by_hand, first_at, count, is_exact, outcome, decided_at, job_id, moved_from
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
