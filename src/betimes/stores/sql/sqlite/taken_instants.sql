-- Tell which of these instants (a JSON array of [schedule, instant]) have been decided before.
SELECT schedule, at
FROM json_each(?) AS due CROSS JOIN betimes_fire
WHERE schedule = json_extract(due.value, '$[0]') AND at = json_extract(due.value, '$[1]') AND by_hand = 0;
