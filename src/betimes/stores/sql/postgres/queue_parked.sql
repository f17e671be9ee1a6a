-- Count the parked jobs of a queue by name.
SELECT parked, count(*) FROM betimes_job WHERE parked IS NOT NULL AND queue = $1 GROUP BY parked;
