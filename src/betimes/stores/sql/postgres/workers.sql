-- List the workers, each with its lease.
SELECT id, host, pid, pid_namespace, process_started, boot_id, queues, concurrency, lease_us, lease_until,
    lease_boot_id, is_dead
FROM betimes_worker
ORDER BY id;
