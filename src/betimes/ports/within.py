"""The part of a store's contract that speaks of callers' own transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from betimes.errors import ConfigurationError

if TYPE_CHECKING:
    from betimes.core.job import Job
    from betimes.core.limits import GateTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Jobs that exist if the transaction which made them commits.

    Attributes:
        jobs: by position the job kept (the one given, or the one found). Their numbers hold once the
            transaction has committed; after a rollback they may become those of other jobs, so that whoever
            looks a job up compares its id and `submitted_at`, too.
        is_over: tells, from any thread, whether the transaction has ended, one way or the other; also False
            while the same connection is in another one.
    """

    jobs: list[Job]
    is_over: Callable[[], bool]


class SubmitsWithin:
    """A store that can be asked to submit within a transaction of the caller's; it refuses unless it can."""

    async def submit_within(
        self, conn: object, jobs: Sequence[Job], *, terms: Sequence[GateTerms] = ()
    ) -> Joined:
        """Keep new jobs, all or none, if and when the caller's open transaction commits (P4).

        What it does to the data is what `submit` does, in that transaction: numbers, names, replacement,
        keys, dependencies, gates and tenants included; and jobs made earlier in it count. Nobody else sees
        anything of it before the commit, and after a rollback it has not been. So no transition is told:
        those made here are not among anybody's events, and workers find the jobs as they find those of other
        processes.

        It may be called in any thread, on whatever loop the connection belongs to, or, where the connection
        is not asynchronous, by a caller without a loop, who takes the one step that it then consists of. It
        waits for nothing that belongs to the loop on which the store was opened, and writes through nothing
        but the connection: its transaction holds locks that any other write would wait for. The store must be
        open in this process, for it has agreed on schema and strategy then. Who commits is the caller.

        Args:
            conn: a connection to the very database of the store, of a kind that its adapter names, within a
                transaction; where the driver begins transactions by itself, one is begun if there is none.
            jobs: as for `submit`.
            terms: the rules of the jobs' gates, declared in the same transaction where they are not known.

        Raises:
            ConfigurationError: the connection is of another kind, to another database, of another thread or
            closed; it would commit at once; the store or its file cannot take part in others' transactions.
            StoreUnavailable: the transaction cannot write now; roll it back and run it again.
            Others as `submit`. The transaction stands as before and can be used, unless the database itself
            has ended it.
        """
        del conn, jobs, terms
        raise ConfigurationError(
            f"the jobs of a {type(self).__name__} cannot be part of a database transaction: submit without "
            "conn= after the commit, or give the scheduler the database itself, 'sqlite:///app.db' or "
            "'postgresql://…'"
        )
