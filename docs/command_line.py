"""Writes the reference of the command line: every command, option and exit code, as `--help` knows them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from docs.docstrings import code, members, table

from betimes.cli.exits import Exit
from betimes.cli.main import betimes
from betimes.cli.settings import SHARED

HELP = (
    "`betimes COMMAND --help` says the same in a terminal, and `python -m betimes` is the same as `betimes`. "
    "How to use it: [Use the command line](../how-to/use-the-command-line.md)."
)

VALUES = (
    "A length of time is seconds, or text such as `90s` or `1h30m`. An instant is in ISO format with its "
    "zone, such as `2026-03-01T09:00+01:00`, or with a `Z` for UTC. A repeatable option takes several values "
    "from its variable with blanks between them, and from pyproject.toml as a list."
)

SIGNALS = (
    "A process that a second signal ends at once ends by that signal: shells show 130 for SIGINT, and 143 "
    "for SIGTERM. Where a command has codes of its own, it says so."
)


def command_line() -> list[str]:
    """Write the parts of the page."""
    rows = [(code(each.value), each.name, members(Exit)[each.name]) for each in Exit]
    return [
        HELP,
        "## Values",
        VALUES,
        "## Exit codes",
        table(("code", "name", "what it means"), rows),
        SIGNALS,
        *described(("betimes",), betimes),
        *[part for names, command in commands(betimes, "betimes") for part in described(names, command)],
    ]


def commands(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the commands below one, each with its names, in the order of the help."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield (*names, name), found
            yield from commands(found, *names, name)


def described(names: tuple[str, ...], command: click.Command) -> list[str]:
    """Write one command."""
    context = click.Context(command, info_name=" ".join(names))
    level = "##" if len(names) <= 2 else "###"  # noqa: PLR2004 - `betimes` and the command itself
    usage = " ".join([*names, *command.collect_usage_pieces(context)])
    parts = [f"{level} {' '.join(names)}", code(usage), *paragraphs(command.help or "")]
    rows = [
        row(param, names, context)
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden
    ]
    return [*parts, table(("option", "default", "variable", "what it does"), rows)] if rows else parts


def row(option: click.Option, names: tuple[str, ...], context: click.Context) -> tuple[str, ...]:
    """Write the row of one option."""
    flags = ", ".join([*option.opts, *option.secondary_opts])
    kind = "" if option.is_flag else f" {option.make_metavar(context)}"
    shown = option.show_default if isinstance(option.show_default, str) else option.default
    default = code(shown) if option.show_default else ""
    variable = f"BETIMES_{option.name.upper()}" if option.name in SHARED else option.envvar
    if variable is None and option.allow_from_autoenv:
        variable = "_".join([*names, option.name or ""]).upper().replace("-", "_")
    return code(f"{flags}{kind}"), default, code(variable) if variable else "", option.help or ""


def paragraphs(text: str) -> list[str]:
    """Turn a help text into Markdown; what is to be left as it is becomes a block."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text).strip())
    return [block(part) if part.startswith("\b") else " ".join(part.split()) for part in parts]


def block(part: str) -> str:
    """Write lines that are left as they are."""
    return f"```text\n{inspect.cleandoc(part.removeprefix(chr(8)).strip(chr(10)))}\n```"
