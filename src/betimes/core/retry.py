"""Whether a failed attempt is tried again, and after how long: exponential back-off with full jitter."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict, cast

from betimes.core.durations import MAX_DURATION_S, Duration, duration_s
from betimes.core.options import reject_unknown
from betimes.core.wording import shown
from betimes.errors import ConfigurationError, JobTimedOut, NonRetryableError, PayloadError

_NUMBERS = ("max_attempts", "base_delay", "max_delay", "jitter")


class UniformSource(Protocol):
    """The part of `random.Random` that back-off needs."""

    def uniform(self, a: float, b: float, /) -> float:
        """Return a number between the two, ends included."""


class StoredRetry(TypedDict):
    """A policy's numbers as JSON keeps them; exception classes cannot be stored."""

    max_attempts: int
    base_delay: float
    max_delay: float
    jitter: bool


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """How often a job is attempted, how long it waits in between, and which errors are worth it.

    The wait before the next attempt is random between 0 and a cap that doubles from attempt to attempt
    ("full jitter", https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), so that jobs
    that failed together do not come back together.

    Args:
        max_attempts: the first one included; at least 1.
        base_delay: the cap after the first attempt: seconds, a `timedelta`, or text such as `"500ms"`. Zero
            means at once.
        max_delay: the cap never exceeds it. None: no limit of its own (100 years).
        jitter: False: wait exactly the cap.
        retry_on: only errors of these classes are tried again.
        never: errors of these classes are not, whatever `retry_on` says.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.

    Example:
        >>> RetryPolicy(5, base_delay="2s", jitter=False).delay(3, rng=None)
        8.0
    """

    max_attempts: int
    base_delay: float
    max_delay: float
    jitter: bool
    retry_on: tuple[type[BaseException], ...]
    never: tuple[type[BaseException], ...]

    def __init__(
        self,
        max_attempts: int,
        base_delay: Duration = 1.0,
        max_delay: Duration | None = 60.0,
        jitter: bool = True,
        retry_on: type[BaseException] | Iterable[type[BaseException]] = (Exception,),
        never: type[BaseException] | Iterable[type[BaseException]] = (),
    ) -> None:
        cap = (
            MAX_DURATION_S if max_delay is None else duration_s(max_delay, name="max_delay", allow_zero=True)
        )
        put = object.__setattr__
        put(self, "max_attempts", _attempts(max_attempts, "max_attempts"))
        put(self, "base_delay", duration_s(base_delay, name="base_delay", allow_zero=True))
        put(self, "max_delay", cap)
        put(self, "jitter", _flag(jitter))
        put(self, "retry_on", _classes(retry_on, "retry_on"))
        put(self, "never", _classes(never, "never"))

    @classmethod
    def of(cls, value: object, *, like: RetryPolicy | None = None, name: str = "retry") -> RetryPolicy:
        """Return the policy that a `retry=` option means.

        Args:
            value: a policy; a number, short for `RetryPolicy(max_attempts=value)`; None: one attempt.
            like: the task's own policy; a bare number changes only its `max_attempts`, and None keeps it.
            name: the option's name, for the message.

        Raises:
            ConfigurationError: anything else.
        """
        if isinstance(value, RetryPolicy):
            return value
        if value is None:
            return cls(1) if like is None else like
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigurationError(
                f"{name} must be a number of attempts or a RetryPolicy, not {shown(value)}"
            )
        attempts = _attempts(value, name)
        return cls(attempts) if like is None else replace(like, max_attempts=attempts)

    def delay(self, attempt: int, rng: UniformSource | None) -> float:
        """Return the seconds to wait after this attempt.

        `cap = min(max_delay, base_delay * 2 ** (attempt - 1))`, then `rng.uniform(0, cap)`, or `cap` without
        jitter. Finite for any attempt.

        Args:
            attempt: the attempt that has just ended, from 1.
            rng: a source of random numbers; None only without jitter.

        Raises:
            ConfigurationError: the attempt is below 1, or jitter has no `rng`.
        """
        if attempt < 1:
            raise ConfigurationError(f"attempts count from 1, and this one is {attempt}")
        try:
            cap = min(self.max_delay, math.ldexp(self.base_delay, attempt - 1))
        except OverflowError:  # Far beyond any cap.
            cap = self.max_delay
        if not self.jitter:
            return cap
        if rng is None:
            raise ConfigurationError("a retry policy with jitter needs an rng to draw its delay from")
        return rng.uniform(0, cap)

    def should_retry(self, error: BaseException, attempt: int) -> bool:
        """Return whether the job is tried again after this attempt ended with this error.

        Never after the last attempt, nor for `NonRetryableError`, for `PayloadError` (the same value would be
        refused again) or for a class in `never`. Always for a timeout of the attempt; else if `retry_on` has
        the error's class.

        Args:
            error: what the attempt raised; `JobTimedOut` for a timeout.
            attempt: the attempt that has just ended, from 1.
        """
        if attempt >= self.max_attempts or isinstance(error, (NonRetryableError, PayloadError, *self.never)):
            return False
        return isinstance(error, (JobTimedOut, *self.retry_on))

    def should_retry_named(self, classes: Collection[str], attempt: int) -> bool:
        """Return `should_retry` for an error of another process, of which only names are here.

        Args:
            classes: `module.qualname` of its class and of those it is derived from.
            attempt: the attempt that has just ended, from 1.
        """
        if attempt >= self.max_attempts or _has_any(classes, (NonRetryableError, PayloadError, *self.never)):
            return False
        return _has_any(classes, (JobTimedOut, *self.retry_on))

    def to_stored(self) -> StoredRetry:
        """Return the numbers as plain JSON data; exception classes stay with the task."""
        return {
            "max_attempts": self.max_attempts,
            "base_delay": self.base_delay,
            "max_delay": self.max_delay,
            "jitter": self.jitter,
        }

    def override_of(self, task_policy: RetryPolicy) -> StoredRetry:
        """Return what to store with a job that overrides its task's policy by this one.

        Raises:
            ConfigurationError: `retry_on` or `never` differ from the task's. Classes cannot be stored, and an
                override that forgot them would be another policy than the one asked for.
        """
        for name in ("retry_on", "never"):
            mine, theirs = getattr(self, name), getattr(task_policy, name)
            if set(mine) != set(theirs):
                raise ConfigurationError(
                    f"retry: a job's own policy cannot change {name} (classes cannot be stored): pass "
                    f"{name}={_named(theirs)} as the task has it, or retry=<a number of attempts>"
                )
        return self.to_stored()

    @classmethod
    def from_stored(cls, stored: Mapping[str, object], task_policy: RetryPolicy) -> RetryPolicy:
        """Return the policy that `override_of` stored, with the classes of the task's own policy.

        Raises:
            ConfigurationError: the stored data is no policy; the text names what is wrong.
        """
        try:
            reject_unknown(stored, _NUMBERS, where="a stored retry policy")
            numbers = cast("StoredRetry", {name: stored[name] for name in _NUMBERS})
        except (TypeError, KeyError) as error:
            raise ConfigurationError(
                f"stored retry policy {shown(dict(stored))} is damaged: {error}"
            ) from error
        return cls(**numbers, retry_on=task_policy.retry_on, never=task_policy.never)


def class_name(kind: type) -> str:
    """Return the name by which a class is known in other processes of the same program."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _has_any(names: Collection[str], kinds: Iterable[type]) -> bool:
    return any(class_name(kind) in names for kind in kinds)


def _attempts(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(
            f"{name} must be a whole number of at least 1 (the first attempt counts), not {shown(value)}"
        )
    return int(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"jitter must be True or False, not {shown(value)}")
    return value


def _classes(value: object, name: str) -> tuple[type[BaseException], ...]:
    given = (value,) if isinstance(value, type) else value
    classes = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if classes is None or not all(
        isinstance(one, type) and issubclass(one, BaseException) for one in classes
    ):
        raise ConfigurationError(
            f"{name} must be exception classes, such as (ConnectionError,), not {shown(value)}"
        )
    return classes


def _named(classes: tuple[type[BaseException], ...]) -> str:
    return f"({', '.join(one.__name__ for one in classes)}{',' if len(classes) == 1 else ''})"
