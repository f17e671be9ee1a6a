"""The command line: `betimes …`, and `python -m betimes …` the same.

Every command is a thin layer on what programs call, too. `main` knows the commands by name and imports one
when it is asked for; `settings` finds what a command goes by, `apps` the application, `opening` its store;
`output` shows the answer to people or to machines, and `exits` says how it went.
"""
