-- Count jobs that have been forgotten.
UPDATE betimes_meta SET value = value + ? WHERE name = 'pruned';
