-- Have the transaction go on with these settings: where names are looked up, and three of the planner's.
SELECT set_config('search_path', $1, true), set_config('enable_seqscan', $2, true),
    set_config('enable_bitmapscan', $3, true), set_config('jit', $4, true);
