"""Calls and answers survive the way across a pipe."""

from __future__ import annotations

import msgspec
import pytest

from betimes.core.job import ErrorInfo
from betimes.core.remote import Answer, Call, Died, Returned, Threw, WantsCancel, WantsSnooze

ERROR = ErrorInfo(type="pkg.Boom", message="böse", traceback="Traceback …")


@pytest.mark.parametrize("decoder", [msgspec.json, msgspec.msgpack])
@pytest.mark.parametrize(
    "answer",
    [
        Returned(b'{"a":[1,null,"\xc3\xbc"]}'),
        Threw(ERROR),
        Threw(ERROR, ("pkg.Boom", "builtins.Exception")),
        WantsSnooze(5_000_000),
        WantsCancel("no need"),
        Died("killed by SIGKILL"),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_comes_back_as_what_it_was(decoder: object, answer: Answer) -> None:
    module = msgspec.json if decoder is msgspec.json else msgspec.msgpack
    assert module.decode(module.encode(answer), type=Answer) == answer


@pytest.mark.parametrize("times", [(None, None), (1, 2)])
def test_a_call_comes_back_as_what_it_was(times: tuple[int | None, int | None]) -> None:
    call = Call("pkg.mod", "Outer.fn", b'[["x"],{}]', "id", "task", 2, 7, *times)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(call), type=Call) == call
