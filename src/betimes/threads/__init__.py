"""The small scheduler with threads, for code without an event loop."""

from betimes.threads.call import CancelToken, TaskFunction
from betimes.threads.scheduler import ThreadScheduler

__all__ = ["CancelToken", "TaskFunction", "ThreadScheduler"]
