"""The shipped suites fail with their values shown, as the tests here do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("betimes.testing.store_contract", "betimes.testing.executor_contract")
