"""The process executor: supervised children, each a fresh interpreter, that can be killed."""

from betimes.executors.process.executor import ProcessExecutor

__all__ = ["ProcessExecutor"]
