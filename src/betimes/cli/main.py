"""`main`: the commands by name. A command's module is imported when it is asked for, and not for `--help`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from betimes.cli.settings import defaults_of, read_settings
from betimes.errors import BetimesError

COMMANDS: dict[str, tuple[str, str]] = {
    "dev": ("betimes.cli.dev:dev", "Run an application's jobs and schedules, again after each change."),
    "worker": ("betimes.cli.worker:worker", "Run an application's jobs and schedules."),
    "crontab": ("betimes.cli.crontab:crontab", "Run a crontab: each line a schedule of a command."),
    "submit": ("betimes.cli.submit:submit", "Submit a job of a task."),
    "job": ("betimes.cli.job:job", "List, show, retry and cancel jobs; read their logs."),
    "queue": ("betimes.cli.queue:queue", "List, pause and resume queues."),
    "schedule": ("betimes.cli.schedule:schedule", "List, preview, pause, resume and trigger schedules."),
    "workers": ("betimes.cli.workers:workers", "List the workers."),
    "explain": ("betimes.cli.explain:explain", "Say why a job, a schedule or a queue has not run."),
    "doctor": ("betimes.cli.doctor:doctor", "Look for what is wrong, and say what to do."),
    "db": ("betimes.cli.db:db", "Look after the store: status, migrate, sql, prune, backup."),
    "bench": ("betimes.cli.bench:bench", "Measure how fast this machine runs jobs."),
    "completion": ("betimes.cli.completion:completion", "Print what a shell needs to complete commands."),
}
"""Each command: where it is, and what `--help` says of it."""


_HELP = {"-h", "--help"}


class Commands(click.Group):
    """The commands of `COMMANDS`, each imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for, and its settings; of one that is not there, the nearest."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - only then

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None
        if name is not None and command is not None:
            # A press of the tab key, and a question for help, are no time to complain.
            self._read_settings(ctx, name, command, strict=not (ctx.resilient_parsing or _HELP & set(rest)))
        return name, command, rest

    @staticmethod
    def _read_settings(ctx: click.Context, name: str, command: click.Command, *, strict: bool) -> None:
        """Give a command its settings, before it reads its options."""
        try:
            ctx.obj = read_settings(COMMANDS)
            ctx.default_map = {name: defaults_of(ctx.obj, command, name)}
        except click.ClickException:
            if strict:
                raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write what the commands are for, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of ours becomes one line and an exit code, and so does Ctrl-C."""
        try:
            return super().invoke(ctx)
        except BetimesError as error:
            from betimes.cli.exits import failure  # noqa: PLC0415 - only then

            raise failure(error) from error
        except (KeyboardInterrupt, click.Abort):
            from betimes.cli.exits import Exit, Failure  # noqa: PLC0415 - only then

            raise Failure("interrupted", Exit.INTERRUPTED) from None


@click.command(
    cls=Commands,
    context_settings={"auto_envvar_prefix": "BETIMES", "help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="betimes", message="betimes %(version)s", allow_from_autoenv=False)
@click.option("-a", "--app", metavar="APP", allow_from_autoenv=False, help="As the command's own --app.")
@click.option("-u", "--url", metavar="URL", allow_from_autoenv=False, help="As the command's own --url.")
def betimes(**_shared: str | None) -> None:
    """Work done later, again, in order of importance.

    Settings come from flags, from the environment (BETIMES_APP, BETIMES_URL, BETIMES_WORKER_CONCURRENCY …),
    and from [tool.betimes] in pyproject.toml, in this order.
    """


def main() -> NoReturn:
    """Run the command line, and exit."""
    betimes.main(prog_name="betimes")
    sys.exit(0)
