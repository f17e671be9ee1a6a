"""Every piece of code in the documents runs, and prints what the documents say.

The blocks of a document run in their order, in a folder of their own:

- `python`: in one namespace for the whole document;
- `python file=NAME`: written to a file of that name;
- `python no-run: REASON`: not run, for the reason given;
- `console`: each line that begins with `$ ` is run by the shell, and what stands below is its output;
- `text output`: what the block before has printed.

In outputs, `...` stands for anything.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from tests.docs.documents import DOCUMENTS, ROOT, Block, blocks, name_of

NOT_RUN = re.compile(r"no-run: \S+ \S+")
MOST_NOT_RUN = 13


def fits(expected: str, printed: str) -> bool:
    pattern = re.escape(expected.strip()).replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


class Reader:
    """Somebody who tries out one document, from top to bottom."""

    def __init__(self, document: Path, folder: Path, module: types.ModuleType) -> None:
        self.document = document
        self.folder = folder
        self.module = module
        self.printed = ""

    def try_out(self, block: Block) -> None:
        where = f"{name_of(self.document)}:{block.line}"
        if block.language == "python" and block.options.startswith("file="):
            (self.folder / block.options.removeprefix("file=")).write_text(block.text)
        elif block.language == "python" and not block.options:
            self.run(block)
        elif block.language == "console":
            self.type_in(block, where)
        elif (block.language, block.options) == ("text", "output"):
            assert fits(block.text, self.printed), f"{where}: printed was\n{self.printed}"

    def run(self, block: Block) -> None:
        # Empty lines in front, so that a traceback names the document's own line.
        code = compile("\n" * (block.line - 1) + block.text, self.document, "exec")
        output = io.StringIO()
        with redirect_stdout(output):
            exec(code, vars(self.module))
        self.printed = output.getvalue()

    def type_in(self, block: Block, where: str) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["sh", "-c", command],
                check=False,
                cwd=self.folder,
                env=os.environ
                | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert done.returncode == 0, f"{where}: $ {command}\n{done.stdout}"
            assert fits(expected, done.stdout), f"{where}: $ {command}\n{done.stdout}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The reader's folder, in which `python` is this one, and `betimes` the command line."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    betimes = tmp_path / "bin" / "betimes"
    betimes.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m betimes "$@"\n')
    betimes.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_the_code_of_a_document_runs_and_prints_what_it_says(
    document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = document.stem.replace("-", "_")
    module = types.ModuleType(f"{name}_page" if name in sys.stdlib_module_names else name)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    reader = Reader(document, folder, module)
    for block in blocks(document.read_text("utf-8")):
        reader.try_out(block)


def test_every_block_says_what_it_is() -> None:
    known = {"python", "pycon", "console", "sh", "bash", "text", "toml", "sql", "mermaid"}
    known |= {"ini", "dockerfile", "yaml"}  # services and containers
    odd = [
        f"{name_of(document)}:{block.line}: {block.language} {block.options}"
        for document in DOCUMENTS
        for block in blocks(document.read_text("utf-8"))
        if (block.language not in known and block.language)
        or (
            block.language == "python"
            and not (block.options.startswith("file=") or NOT_RUN.match(block.options) or not block.options)
        )
    ]
    assert odd == []


def test_few_blocks_are_not_run() -> None:
    not_run = [
        f"{name_of(document)}:{block.line}"
        for document in DOCUMENTS
        for block in blocks(document.read_text("utf-8"))
        if block.language == "python" and block.options.startswith("no-run")
    ]
    assert len(not_run) <= MOST_NOT_RUN, not_run


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nassert False\n```", AssertionError),
        ("```python\nprint(1)\n```\n\n```text output\n2\n```", AssertionError),
        ("```console\n$ exit 3\n```", AssertionError),
        ("```console\n$ echo a\nb\n```", AssertionError),
        ("```python\nx = 1\n```\n\n```python\nx += y\n```", NameError),
    ],
)
def test_code_that_does_not_do_what_it_says_is_found(text: str, error: type[Exception], folder: Path) -> None:
    reader = Reader(ROOT / "text.md", folder, types.ModuleType("text"))
    *harmless, wrong = blocks(text)
    for block in harmless:
        reader.try_out(block)
    with pytest.raises(error):
        reader.try_out(wrong)


def test_an_ellipsis_in_an_output_stands_for_anything() -> None:
    assert fits("job ... is READY\n...", "job 17 is READY\nsince 9\nand so on")
    assert not fits("job ... is READY", "job 17 is DELAYED")
