"""The engine of one process: thin loops that carry out what `core` decides, through the ports."""
