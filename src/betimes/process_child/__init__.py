"""The program of a child process that runs process jobs: one after the other, on its main thread.

It is started by `betimes.executors.process`, as a fresh interpreter. It opens no store and no scheduler.
"""
