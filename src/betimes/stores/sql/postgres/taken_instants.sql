-- Tell which of these instants (a JSON array of [schedule, instant]) have been decided before.
SELECT fire.schedule, fire.at
FROM json_array_elements($1::json) AS due CROSS JOIN LATERAL (
    SELECT schedule, at FROM betimes_fire
    WHERE schedule = due ->> 0 AND at = (due ->> 1)::bigint AND by_hand = 0
    LIMIT 1
) AS fire;
