-- Tell whether jobs have been submitted in callers' own transactions, by connections that are not ours.
SELECT EXISTS (SELECT 1 FROM betimes_meta WHERE name = 'is_shared');
