"""A call as somebody types it: which task is meant, and what its arguments are."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from betimes.cli.apps import lead_with
from betimes.cli.exits import Exit, Failure
from betimes.core.codec import decoder_of, encode_json
from betimes.core.options import nearest
from betimes.errors import PayloadError, UnknownTask
from betimes.scheduler import Scheduler
from betimes.tasks import BoundJob, Submitter, Task

_NAMED = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)


def app_of(task: str) -> tuple[str, str] | None:
    """Return the application that a task's name tells, and the rest of the name; None: it tells none.

    `shop.jobs.add` is `add` in the module `shop.jobs`, and so is `shop.jobs:add`; `jobs.py:add` is in a file.
    """
    place, colon, rest = task.rpartition(":")
    if colon:
        return (place, rest) if place and rest else None
    parts = task.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:end])
        if _is_module(module):
            return module, ".".join(parts[end:])
    return None


def _is_module(name: str) -> bool:
    """Say whether there is such a module, from the working directory on; its packages are imported."""
    lead_with(str(Path.cwd()))
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def find_task(scheduler: Scheduler, wanted: str) -> Task[..., Any]:
    """Return the task of this name, or the only one whose name ends so.

    Raises:
        UnknownTask: there is none; the text names the nearest.
        Failure: several names end so.
    """
    name = name_of_task(list(scheduler._definitions), wanted)  # noqa: SLF001 - the command line is of the package
    return Task(scheduler, scheduler._definitions[name])  # noqa: SLF001 - as above


def name_of_task(names: Iterable[str], wanted: str) -> str:
    """Return the name that is meant; errors as `find_task`."""
    names = sorted(names)
    wanted = wanted.replace(":", ".")
    if wanted in names:
        return wanted
    found = [name for name in names if name.endswith(f".{wanted}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise Failure(
            f"several tasks end with {wanted!r}: {', '.join(found)}; write more of it", Exit.UNKNOWN
        )
    ends = {name.rpartition(".")[2]: name for name in names}
    near = nearest(wanted, names) or ends.get(nearest(wanted.rpartition(".")[2], ends) or "")
    advice = f"did you mean {near!r}?" if near else f"it has {', '.join(names) or 'none'}"
    raise UnknownTask(f"the application has no task {wanted!r}; {advice}", task=wanted)


def bind_texts(submitter: Submitter[..., Any], task: Task[..., Any], texts: Sequence[str]) -> BoundJob[Any]:
    """Bind arguments that were typed: values, and `name=value` for those by name.

    A value is JSON where that fits its parameter, and otherwise the text itself.

    Raises:
        Failure: the call does not fit the task's function.
    """
    signature = submitter._task.signature  # noqa: SLF001 - as above
    args: list[str] = []
    kwargs: dict[str, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        if named is None:
            if kwargs:
                raise Failure(f"{text!r} stands behind an argument with a name: put it before", Exit.USAGE)
            args.append(text)
        elif not signature.can_be_named(named[1]):
            raise Failure(_no_such_name(task, named[1], signature.names, text), Exit.USAGE)
        elif named[1] in kwargs:
            raise Failure(f"the argument {named[1]!r} is there twice", Exit.USAGE)
        else:
            kwargs[named[1]] = named[2]
    return _bind(submitter, args, kwargs, read_text)


def _no_such_name(task: Task[..., Any], name: str, names: Sequence[str], text: str) -> str:
    near = nearest(name, names)
    advice = f"did you mean {near!r}?" if near else f"its arguments are {', '.join(names) or 'without names'}"
    quoted = encode_json(text).decode()
    return f"{task.name} has no argument {name!r}; {advice} (as a text, write it in JSON: '{quoted}')"


def bind_line(submitter: Submitter[..., Any], line: str) -> BoundJob[Any]:
    """Bind the arguments of a line of JSON: an array by position, or an object by name.

    Raises:
        Failure: it is neither, or the call does not fit the task's function.
    """
    try:
        given = msgspec.json.decode(line.encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Failure(f"is no JSON: {error}", Exit.USAGE) from error
    if isinstance(given, list):
        return _bind(submitter, given, {}, read_json)
    if isinstance(given, dict):
        return _bind(submitter, [], given, read_json)
    raise Failure("is neither a JSON array, for arguments by position, nor an object, by name", Exit.USAGE)


def _bind(submitter: Submitter[..., Any], args: Any, kwargs: Any, read: Any) -> BoundJob[Any]:
    try:
        payload = submitter._task.signature.encode_given(args, kwargs, read)  # noqa: SLF001 - as above
    except (TypeError, PayloadError) as error:
        raise Failure(str(error), Exit.USAGE) from error
    return submitter._bound(payload)  # noqa: SLF001 - as above


def read_text(text: str, kind: Any) -> Any:
    """Return the value that a text means for a parameter of this kind: JSON where that fits, or the text.

    Raises:
        msgspec.ValidationError: it is neither.

    Example:
        >>> read_text("1", int), read_text("1", str), read_text("null", str | None)
        (1, '1', None)
    """
    try:
        return decoder_of(kind).decode(text.encode(errors="surrogateescape"))
    except Exception as error:  # noqa: BLE001 - constructors of annotated types may raise anything
        try:
            return read_json(text, kind)
        except Exception:
            if _is_json(text):
                raise error from None
            raise


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode(errors="surrogateescape"))
    except msgspec.DecodeError:
        return False
    return True


def read_json(value: Any, kind: Any) -> Any:
    """Return what a plain JSON value means for a parameter of this kind.

    Raises:
        msgspec.ValidationError: it does not fit.
    """
    return decoder_of(kind).decode(encode_json(value))
