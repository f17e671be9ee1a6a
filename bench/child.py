"""One measured run: `python -m bench.child MODULE:FUNCTION PARAMS FOLDER`, the parameters as JSON.

The function is looked up under `bench`. It gets its parameters by name, and `folder`, an empty folder, if it
asks for one. The last line printed is what it returns, as JSON, with the processor time of the whole run.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

from bench.harness import MISSING


def main(call: str, params: str, folder: str) -> int:
    """Run the function and print what it returns."""
    module_name, _, name = call.partition(":")
    try:
        module = importlib.import_module(f"bench.{module_name}")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in {"bench", "betimes"}:
            raise
        print(error)
        return MISSING
    function = getattr(module, name)
    arguments: dict[str, Any] = json.loads(params)
    for key, value in (("folder", folder), ("shared", arguments.pop("shared", None))):
        if key in inspect.signature(function).parameters and value is not None:
            arguments[key] = Path(value)
    figures = function(**arguments) or {}
    times = os.times()
    print(json.dumps(figures | {"cpu_s": times.user + times.system}))
    return 0


if __name__ == "__main__":
    # Threads of libraries that do not end by themselves shall not hold up the end.
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
