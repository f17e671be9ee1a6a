-- Take the write lock of a transaction that was only begun: change nothing.
UPDATE betimes_meta SET value = value WHERE name = 'last_seq';
