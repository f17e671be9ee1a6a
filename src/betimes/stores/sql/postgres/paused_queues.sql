-- List the paused queues.
SELECT queue FROM betimes_paused_queue;
