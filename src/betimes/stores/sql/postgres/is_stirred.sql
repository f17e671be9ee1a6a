-- Tell whether anything is left to whoever keeps the order.
SELECT EXISTS (SELECT FROM betimes_stirred)
    OR EXISTS (SELECT FROM betimes_job WHERE status = 'ready' AND tenant IS NOT NULL AND sort_key = 9223372036854775807);
