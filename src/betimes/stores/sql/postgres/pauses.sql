-- List the paused queues, each with since when and by whom.
SELECT queue, paused_at, paused_by FROM betimes_paused_queue;
