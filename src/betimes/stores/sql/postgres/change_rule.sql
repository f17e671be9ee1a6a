-- Put other terms in the place of those declared; NULL: none.
UPDATE betimes_rule SET changed = $2 WHERE rule = $1;
