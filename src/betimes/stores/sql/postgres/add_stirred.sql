-- Note for whoever keeps the order that lines were touched, or (without a queue) that gates may let more pass.
INSERT INTO betimes_stirred (queue, lane, name)
SELECT new.* FROM unnest($1::text[], $2::text[], $3::text[]) AS new;
