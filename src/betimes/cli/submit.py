"""`betimes submit`: one job of a task, or many from lines of JSON."""

from __future__ import annotations

import re
from typing import Any

import click

from betimes.cli.opening import app_option
from betimes.cli.output import json_option
from betimes.cli.values import DURATION, DURATION_OR_INSTANT, INSTANT

_NEGATIVE = re.compile(r"-\.?\d\S*")
_OPTION = re.compile(r"--?[A-Za-z].*")


class Submit(click.Command):
    """Takes `-5` for an argument, and not for an option of that name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Mark negative numbers by a blank, which is no part of a number."""
        marked = [
            f" {text}"
            if _NEGATIVE.fullmatch(text) and not (place and _OPTION.fullmatch(args[place - 1]))
            else text
            for place, text in enumerate(args)
        ]
        return super().parse_args(ctx, marked)


def _complete_task(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Name the tasks of the application; none, if it cannot be loaded."""
    from betimes.cli.completion import task_names  # noqa: PLC0415 - `--help` does without

    return task_names(ctx.params.get("app"), incomplete)


@click.command(cls=Submit)
@app_option
@click.argument("task", metavar="TASK", shell_complete=_complete_task)
@click.argument("arguments", nargs=-1, metavar="[VALUE | NAME=VALUE]...")
@click.option("-p", "--priority", metavar="NUMBER", help="-1000 to 1000, or low, medium, high, critical.")
@click.option("--delay", type=DURATION, help="Start at the earliest after this time.")
@click.option("--run-at", type=INSTANT, help="Start at the earliest then.")
@click.option("-q", "--queue", metavar="NAME", help="The queue it waits in.")
@click.option("--key", metavar="TEXT", help="Idempotency key: the same again returns the first job.")
@click.option("--key-for", type=DURATION, help="How long the key is remembered.")
@click.option("--job-id", metavar="ID", help="The id it gets.")
@click.option("--replace", is_flag=True, help="With --job-id: end the older versions of it.")
@click.option(
    "--depends-on", multiple=True, metavar="ID", help="Wait until this job has completed; repeatable."
)
@click.option(
    "--on-dependency-failure",
    type=click.Choice(["cancel", "run"]),
    default="cancel",
    show_default=True,
    help="What happens when one of those does not complete.",
)
@click.option("--timeout", type=DURATION, help="The most time for each attempt.")
@click.option("--retry", type=click.IntRange(min=1), metavar="NUMBER", help="The most attempts.")
@click.option("--expires", type=DURATION_OR_INSTANT, help="Not started by then, it is cancelled.")
@click.option("--tag", multiple=True, metavar="TEXT", help="For finding it again; repeatable.")
@click.option("--wait", is_flag=True, help="Wait for its end, and print the result as JSON.")
@click.option("--wait-timeout", type=DURATION, help="As --wait, but no longer than this.")
@click.option("--stdin", is_flag=True, help="Read the arguments of many jobs: a JSON array or object a line.")
@click.option("--dry-run", is_flag=True, help="Check all, and submit nothing.")
@json_option
def submit(*, app: str | None, task: str, arguments: tuple[str, ...], **options: Any) -> None:
    """Submit a job of TASK, and print its id.

    TASK is a name, or the end of one that only one task has. Without an application, TASK tells it:
    shop.jobs.add is add in the module shop.jobs.

    A value is JSON where that fits its parameter, and text otherwise: 5, '[1, 2]', hello, 2026-03-01. A text
    with an = in it is written in JSON: '"a=b"'.

    With --wait the id goes to stderr and the result to stdout; the exit code is 0 if the job has completed,
    1 if not, and 8 if the time was over first.

    With --stdin each line is a job: [1, 2] has its arguments by position, {"a": 1} by name. All lines are
    checked before the first job is submitted.
    """
    from betimes.cli.submitting import Asked, submit_lines, submit_one  # noqa: PLC0415 - `--help` does without

    asked = Asked.of(app, task, options)
    if options["stdin"]:
        if arguments:
            raise click.UsageError("with --stdin the arguments are read from stdin, and none is written here")
        submit_lines(asked)
    else:
        submit_one(asked, [text.strip() if _NEGATIVE.fullmatch(text.strip()) else text for text in arguments])
