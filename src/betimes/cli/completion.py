"""`betimes completion`: what a shell needs to complete commands, options, and names of tasks."""

from __future__ import annotations

import os
from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print a script that has SHELL complete commands, options, and names of tasks.

    Without SHELL it is the one that you use. To have it in every new shell:

    \b
        echo 'eval "$(betimes completion bash)"' >> ~/.bashrc
        echo 'eval "$(betimes completion zsh)"' >> ~/.zshrc
        betimes completion fish > ~/.config/fish/completions/betimes.fish
    """  # noqa: D301 - the backspace tells click to leave these lines as they are
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - `--help` does without

    from betimes.cli.main import betimes  # noqa: PLC0415 - it knows this command

    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise click.UsageError(f"which shell? Name it: {', '.join(SHELLS)}")
    click.echo(kind(betimes, {}, "betimes", "_BETIMES_COMPLETE").source())


def task_names(app: str | None, beginning: str) -> list[str]:
    """Return the names of an application's tasks that begin so; none, if it cannot be loaded."""
    from betimes.cli.apps import load_app  # noqa: PLC0415 - `--help` does without

    if not app:
        return []
    try:
        names = sorted(load_app(app)._definitions)  # noqa: SLF001 - the command line is part of the package
    except Exception:  # noqa: BLE001 - a press of a key must not end in a traceback
        return []
    ends = [name.rpartition(".")[2] for name in names]
    short = [end for end in ends if ends.count(end) == 1 and end not in names]
    return [name for name in (*names, *short) if name.startswith(beginning)]
