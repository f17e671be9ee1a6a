"""Planted bugs: shares of tenants and of queues, and child processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from tests.simulation.bugs import bug
from tests.simulation.children import Child, VirtualChildren

from betimes.core import shares
from betimes.core.queue_shares import QueueShares
from betimes.core.remote import Died
from betimes.stores.relational import tags


def change_tags(patch: pytest.MonkeyPatch, name: str, change: Callable[..., int]) -> None:
    """Change how tenants are numbered, on every store."""
    for module in (shares, tags):
        patch.setattr(module, name, change)


@bug("of their shares", "memory", "sqlite")
def idle_tenant_gets_credit(patch: pytest.MonkeyPatch) -> None:
    """Who comes back goes on where it was, however long ago, and new ones begin at zero."""
    change_tags(patch, "start_tag", lambda virtual, finish: finish or 0)


@bug("of their shares", "memory", "sqlite")
def flood_of_one_tenant_delays_the_others(patch: pytest.MonkeyPatch) -> None:
    """A tenant's jobs do not move its next one back."""
    change_tags(patch, "finish_tag", lambda start, cost: start)


@bug("of their shares", "memory", "sqlite")
def queues_are_dealt_alike(patch: pytest.MonkeyPatch) -> None:
    """All queues have the same share."""
    begin = QueueShares.__init__

    def begin_alike(self: QueueShares, given: Mapping[str, int]) -> None:
        begin(self, dict.fromkeys(given, 1))

    patch.setattr(QueueShares, "__init__", begin_alike)


@bug("was charged for a child that died under another")
def innocent_is_charged_for_a_crashed_child(patch: pytest.MonkeyPatch) -> None:
    """A child takes all with it that lies in it, begun or not."""
    die = VirtualChildren.die

    def take_all(self: VirtualChildren, child: Child) -> None:
        die(self, child)
        while child.behind:
            run = child.behind.popleft()
            self.end(run, run.answered(Died("the process was killed by SIGKILL")))

    patch.setattr(VirtualChildren, "die", take_all)


@bug("timed out, and has begun at")
def timeout_is_counted_from_the_claim(patch: pytest.MonkeyPatch) -> None:
    """Who lies in a child behind others has less time, or none."""
    patch.setattr(VirtualChildren, "tells_begun", False)
