"""Betimes beside its peers and beside the limit: `python -m bench --help`. Not part of the tests."""
