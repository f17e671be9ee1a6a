-- Count the live jobs of each queue by status.
SELECT queue, status, count(*) FROM betimes_job GROUP BY queue, status;
