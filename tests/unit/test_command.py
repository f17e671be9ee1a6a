"""Commands are checked when they are registered, and a call makes one line of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from betimes.core.command import Command, CommandLine, CommandResult, make_command
from betimes.core.payload import Signature
from betimes.errors import ConfigurationError, PayloadError


def command(argv: object, **options: Any) -> Command:
    given: dict[str, Any] = {
        "env": None,
        "cwd": None,
        "stdin": None,
        "ok_codes": (0,),
        "retry_codes": None,
        "max_output": 1000,
    }
    return make_command("job", argv, **given | options)


def line_of(made: Command, *args: str, **call: Any) -> CommandLine:
    return cast("CommandLine", cast("object", made(*args, **call)))


def refusal(argv: object = ("true",), **options: Any) -> str:
    with pytest.raises(ConfigurationError) as error:
        command(argv, **options)
    return str(error.value)


def test_arguments_of_a_call_are_appended_to_the_list() -> None:
    made = command(["tar", "-c"])
    assert line_of(made, "a b", "$c").argv == ("tar", "-c", "a b", "$c")
    assert line_of(made).argv == ("tar", "-c")


def test_the_odd_bytes_of_a_file_name_are_kept() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert command(["cat", name]).line.argv == ("cat", name)


def test_shell_text_takes_arguments_as_parameters_and_never_in_its_text() -> None:
    assert line_of(command('echo "$1"'), "; rm -rf /").argv == (
        "/bin/sh",
        "-c",
        'echo "$1"',
        "job",
        "; rm -rf /",
    )


def test_a_call_may_give_its_own_input_directory_and_variables() -> None:
    made = command(["true"], env={"A": "1", "B": "2"}, cwd=Path("/tmp"), stdin="in")
    assert line_of(made) == made.line
    assert (made.line.cwd, made.line.stdin, made.line.env) == ("/tmp", "in", {"A": "1", "B": "2"})
    line = line_of(made, stdin="", env={"B": None, "C": "3"}, cwd="/")
    assert (line.cwd, line.stdin, line.env) == ("/", "", {"A": "1", "B": None, "C": "3"})
    assert line.environment({"B": "0", "PATH": "/bin"}) == {"A": "1", "C": "3", "PATH": "/bin"}


def test_a_command_may_have_a_user_a_grace_and_no_environment_but_its_own() -> None:
    made = command(["true"], user="www-data", inherit_env=False, grace="2s", env={"A": "1", "C": None})
    assert (made.line.user, made.line.inherits, made.line.grace_s) == ("www-data", False, 2.0)
    assert made.line.environment({"B": "0"}, {"A": "0", "C": "3", "D": "4"}) == {"A": "1", "D": "4"}
    plain = command(["true"]).line
    assert (plain.user, plain.inherits, plain.grace_s) == (None, True, None)
    assert plain.environment({"B": "0", "D": "0"}, {"D": "4"}) == {"B": "0", "D": "4"}
    assert command(["true"], grace=0).line.grace_s == 0
    for user in ("", 33, "a\nb"):
        assert "user is " in refusal(user=user)
    assert refusal(inherit_env=0) == "inherit_env is 0; it is True or False"
    assert "grace must not be negative" in refusal(grace=-1)


def test_a_program_cannot_be_given_a_nul() -> None:
    made = command(["true"])
    with pytest.raises(PayloadError, match=r"args\[1\] holds a NUL"):
        made("a", "b\0")
    with pytest.raises(PayloadError, match=r"env\['A'\] holds a NUL"):
        made(env={"A": "\0"})
    with pytest.raises(PayloadError, match="cwd holds a NUL"):
        made(cwd="/\0")
    with pytest.raises(PayloadError, match="cwd is ''"):
        made(cwd="")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "the command of job is empty"),
        ([""], "the command of job is empty"),
        (" ", "the shell text of job is empty"),
        ("a\0", "the shell text holds a NUL"),
        (["a", "b\0"], "the command's place 1 holds a NUL"),
        (["a", "\ud800"], "the command's place 1 holds a lone surrogate"),
        (["a", 1], "has 1 at place 1; all of it is text: write str(…)"),
        ([Path("a")], "at place 0; all of it is text"),
        (b"true", "a command is a list such as"),
        (7, "a command is a list such as"),
    ],
)
def test_a_wrong_command_is_refused_by_name(argv: object, text: str) -> None:
    assert text in refusal(argv)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"env": ["A=1"]}, "env is ['A=1']; it is a dict"),
        ({"env": {"A=B": "1"}}, "env has 'A=B' for a name"),
        ({"env": {"": "1"}}, "env has '' for a name"),
        ({"env": {1: "1"}}, "env has 1 for a name"),
        ({"env": {"A": 1}}, "env['A'] is 1; it is text, or None"),
        ({"env": {"A\0": "1"}}, "holds a NUL"),
        ({"env": {"A": "\ud800"}}, "env['A'] holds a lone surrogate"),
        ({"stdin": "\ud800"}, "stdin is"),
        ({"cwd": ""}, "cwd is ''; it is the path"),
        ({"cwd": 1}, "cwd is 1; it is the path"),
        ({"cwd": "~/work"}, "nothing expands '~'"),
        ({"stdin": b"in"}, "stdin is b'in'; it is the text"),
        ({"ok_codes": ()}, "ok_codes is empty"),
        ({"ok_codes": "0"}, "ok_codes is '0'; it is exit codes"),
        ({"ok_codes": None}, "ok_codes is None; it is exit codes"),
        ({"ok_codes": (256,)}, "ok_codes has 256; an exit code is a whole number from 0 to 255"),
        ({"ok_codes": (-1,)}, "ok_codes has -1; an exit code is a whole number from 0 to 255"),
        ({"ok_codes": (True,)}, "ok_codes has True"),
        ({"retry_codes": ("75",)}, "retry_codes has '75'"),
        ({"retry_codes": -65}, "or minus a signal's, down to -64"),
        ({"ok_codes": (0, 3), "retry_codes": (3, 4)}, "3 stands in ok_codes and in retry_codes"),
        ({"max_output": -1}, "max_output is -1; it is a number of bytes from 0 to"),
        ({"max_output": 5_000_000}, "max_output is 5000000"),
        ({"max_output": True}, "max_output is True"),
        ({"max_output": "1M"}, "max_output is '1M'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    assert text in refusal(**options)


def test_an_end_is_a_success_by_its_code_alone() -> None:
    line = command(["true"], ok_codes=(0, 1)).line
    assert line.failure(CommandResult(exit_code=1, stderr="no match"), "exited with code 1") is None
    failed = line.failure(CommandResult(exit_code=2, stdout="out", stderr="bad\n"), "exited with code 2")
    assert failed is not None
    assert str(failed) == "job exited with code 2; its stderr ends: bad"
    assert (failed.exit_code, failed.stdout, failed.stderr, failed.may_retry) == (2, "out", "bad\n", True)


def test_the_end_of_stderr_is_in_the_message_where_the_error_stands() -> None:
    failed = command(["true"]).line.failure(
        CommandResult(exit_code=1, stderr="a" * 5000 + "the error\n"), "exited with code 1"
    )
    assert str(failed).endswith("the error")
    assert len(str(failed)) < 2100
    silent = command(["true"]).line.failure(CommandResult(exit_code=-9), "was killed by SIGKILL")
    assert str(silent) == "job was killed by SIGKILL; it wrote nothing to stderr"


@pytest.mark.parametrize(
    ("codes", "code", "may_retry"),
    [(None, 3, True), (75, 75, True), ((75, -9), -9, True), ((75,), 3, False), ((), 3, False)],
)
def test_only_the_codes_that_are_named_are_retried(codes: Any, code: int, may_retry: bool) -> None:
    failed = command(["true"], retry_codes=codes).line.failure(CommandResult(exit_code=code), "ended")
    assert failed is not None
    assert failed.may_retry is may_retry


def test_calls_and_results_are_stored_and_come_back_as_they_were() -> None:
    made = command(["true"])
    signature = Signature(made)
    payload = signature.encode(("a", "b"), {"stdin": "in", "env": {"A": "1", "B": None}})
    assert signature.decode(payload) == (("a", "b"), {"stdin": "in", "env": {"A": "1", "B": None}})
    result = CommandResult(exit_code=0, stdout="out\0\n", stderr="ä", stdout_truncated=True)
    assert signature.decode_result(signature.encode_result(result)) == result
    with pytest.raises(PayloadError, match=r"job\(\) argument"):
        signature.encode((1,), {})
    with pytest.raises(TypeError, match=r"job\(\) got an unexpected keyword argument 'std'"):
        signature.encode((), {"std": ""})


def test_a_command_names_itself() -> None:
    assert repr(command(["true"])) == "<Command job>"
    assert command(["true", "now"]).__doc__ == "Run true now"
