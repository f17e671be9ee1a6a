-- List all rules with their terms.
SELECT rule, declared, changed FROM betimes_rule ORDER BY rule;
