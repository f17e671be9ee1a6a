"""What the stores on SQL databases have in common: all that moves jobs, written once.

Each database brings its connections, how its transactions begin and end, and the text of every statement that
is named here.
"""
