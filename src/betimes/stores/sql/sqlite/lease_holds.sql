-- Tell whether a worker's lease is in force.
SELECT EXISTS (
    SELECT 1 FROM betimes_worker WHERE id = ? AND is_dead = 0 AND lease_until > ? AND lease_boot_id = ?
);
