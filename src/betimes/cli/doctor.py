"""`betimes doctor`: what is wrong with a store and its workers, and what to do about it."""

from __future__ import annotations

import click

from betimes.cli.opening import store_options, target
from betimes.cli.output import json_option, show_json


@click.command()
@click.option("--full", is_flag=True, help="Check the whole file for damage, too, which can take long.")
@store_options
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, full: bool, app: str | None, url: str | None, as_json: bool) -> None:
    """Check the store up, and what works on it; changes nothing.

    Exit code: 0 all is well (notes included), 1 something is a warning, 2 something is an error.
    """
    import asyncio  # noqa: PLC0415 - `--help` does without

    checkup = asyncio.run(target(app, url).doctor(full=full))
    if as_json:
        show_json({"worst": checkup.worst, "checkup": checkup})
    else:
        click.echo(str(checkup))
    ctx.exit(checkup.exit_code)
