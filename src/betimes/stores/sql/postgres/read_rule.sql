-- Read the terms of a rule: what the code declares, and what was put in its place.
SELECT declared, changed FROM betimes_rule WHERE rule = $1;
