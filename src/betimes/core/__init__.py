"""The pure part: every decision of the scheduler, as functions of values."""
