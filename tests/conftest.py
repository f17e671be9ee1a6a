"""What holds for all tests: Hypothesis without deadlines, as nothing here is timed; and the plugins."""

from __future__ import annotations

import os
import signal
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.postgres.fixtures"]

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("deep", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Hear of SIGINT, and load the plugin of this checkout where Betimes is not installed.

    A shell has what it runs in the background ignore SIGINT, and so would the programs that tests interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.pluginmanager.has_plugin("betimes"):
        config.pluginmanager.register(import_module("_betimes_pytest"), "betimes")
