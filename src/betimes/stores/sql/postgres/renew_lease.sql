-- Prolong the lease of a worker for its full term, unless it has been declared dead or is of another boot.
UPDATE betimes_worker SET lease_until = $2::bigint + lease_us WHERE id = $1 AND is_dead = 0 AND lease_boot_id = $3;
