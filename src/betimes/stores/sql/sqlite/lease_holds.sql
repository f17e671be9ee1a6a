-- Tell whether a worker's lease is in force, and whether any line may be claimed from.
SELECT EXISTS (SELECT 1 FROM betimes_worker WHERE id = ? AND is_dead = 0 AND lease_until > ? AND lease_boot_id = ?),
    EXISTS (SELECT 1 FROM betimes_line WHERE waits_at IS NULL);
