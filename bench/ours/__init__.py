"""The same work done by Betimes, through its public calls only."""
