-- Prolong the lease of a worker for its full term, unless it has been declared dead or is of another boot.
-- A beat that was held up does not shorten what a later one has said.
UPDATE betimes_worker SET lease_until = max(lease_until, ?2 + lease_us)
WHERE id = ?1 AND is_dead = 0 AND lease_boot_id = ?3;
