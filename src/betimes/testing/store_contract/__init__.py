"""The conformance suite for stores: what each must do, as tests to be subclassed.

Example:
    >>> from betimes.testing.store_contract import DurableStoreContract
    >>> class TestMyStore(DurableStoreContract):
    ...     def make_store(self, clock):
    ...         return MyStore("jobs", clock=clock)

To see the values in a failed assert, put `pytest.register_assert_rewrite("betimes.testing.store_contract")`
into `conftest.py`, before anything imports this package.
"""

from betimes.testing.store_contract.contract import StoreContract
from betimes.testing.store_contract.durable import DurableStoreContract
from betimes.testing.store_contract.within import Transaction, TransactionContract

__all__ = ["DurableStoreContract", "StoreContract", "Transaction", "TransactionContract"]
