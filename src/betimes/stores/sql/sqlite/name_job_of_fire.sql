-- Say which job a fire became.
UPDATE betimes_fire SET seq = ? WHERE schedule = ? AND fire_at = ?;
