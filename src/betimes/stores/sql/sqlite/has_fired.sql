-- Tell whether an instant of a schedule has fired.
SELECT EXISTS (SELECT 1 FROM betimes_fire WHERE schedule = ? AND fire_at = ?);
