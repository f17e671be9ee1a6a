-- Begin a worker's lease.
INSERT INTO betimes_worker (
    id, host, pid, pid_namespace, process_started, boot_id, queues, concurrency, lease_us, lease_until, lease_boot_id,
    is_dead
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)
ON CONFLICT (id) DO UPDATE
SET host = excluded.host,
    pid = excluded.pid,
    pid_namespace = excluded.pid_namespace,
    process_started = excluded.process_started,
    boot_id = excluded.boot_id,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    lease_us = excluded.lease_us,
    lease_until = excluded.lease_until,
    lease_boot_id = excluded.lease_boot_id,
    is_dead = 0;
