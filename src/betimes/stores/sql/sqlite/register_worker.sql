-- Begin a worker's lease.
INSERT OR REPLACE INTO betimes_worker (
    id, host, pid, pid_namespace, process_started, boot_id, queues, concurrency, lease_us, lease_until, lease_boot_id, is_dead
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0);
