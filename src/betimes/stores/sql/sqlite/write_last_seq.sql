-- Remember the number of the newest job; it never goes back, whatever is pruned.
UPDATE betimes_meta SET value = ? WHERE name = 'last_seq';
