-- Read the finish tags of tenants (a JSON array of names).
SELECT name, finish FROM betimes_tenant WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1::json)));
