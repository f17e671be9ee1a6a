-- Count the parked jobs by name.
SELECT parked, count(*) FROM betimes_job WHERE parked IS NOT NULL GROUP BY parked;
