-- Read the terms by which gates go now, by their rules (a JSON array).
SELECT rule, coalesce(changed, declared) FROM betimes_rule
WHERE rule = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
