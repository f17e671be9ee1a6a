"""Files and functions stay small enough to be read at a glance."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "betimes"

FILE_LINES = 400
FUNCTION_LINES = 50
POSITIONAL_PARAMETERS = 5  # besides self or cls

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_of(text: str) -> Iterator[tuple[Function, bool]]:
    """Every function of a module, nested ones too, and whether its first parameter is self or cls."""
    for node in ast.walk(ast.parse(text)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                decorators = {name.id for name in child.decorator_list if isinstance(name, ast.Name)}
                yield child, isinstance(node, ast.ClassDef) and "staticmethod" not in decorators


def code_lines(text: str) -> set[int]:
    """The lines that hold code: neither blank, nor only a comment."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in silent
        for line in range(token.start[0], token.end[0] + 1)
    }


def length(function: Function, lines: set[int]) -> int:
    """A function's lines of code, its signature included and its docstring not."""
    inside = set(range(function.lineno, (function.end_lineno or function.lineno) + 1)) & lines
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        inside -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(inside)


def too_long(text: str) -> list[str]:
    lines = code_lines(text)
    return [node.name for node, _ in functions_of(text) if length(node, lines) > FUNCTION_LINES]


# Signatures that the public interface fixes: a policy's six values may all be given by position.
WIDE = {"core/retry.py": ["__init__"]}


def too_many_parameters(text: str) -> list[str]:
    return [
        node.name
        for node, is_bound in functions_of(text)
        if len(node.args.posonlyargs) + len(node.args.args) - is_bound > POSITIONAL_PARAMETERS
    ]


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The text of every source file, by its path below the package."""
    texts = {
        path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))
    }
    assert "core/queue.py" in texts, "this is not the package"
    return texts


def test_no_file_is_over_the_cap(sources: dict[str, str]) -> None:
    lengths = {name: len(text.splitlines()) for name, text in sources.items()}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_over_the_cap(sources: dict[str, str]) -> None:
    assert {name: found for name, text in sources.items() if (found := too_long(text))} == {}


def test_no_function_takes_more_than_five_positional_parameters(sources: dict[str, str]) -> None:
    assert {name: found for name, text in sources.items() if (found := too_many_parameters(text))} == WIDE


@pytest.mark.parametrize(("lines", "expected"), [(FUNCTION_LINES, []), (FUNCTION_LINES + 1, ["f"])])
def test_a_function_is_measured_without_its_docstring_blanks_and_comments(
    lines: int, expected: list[str]
) -> None:
    body = "    # why\n\n    x = 1\n" * (lines - 1)
    assert too_long(f'def f():\n    """One\n    two.\n    """\n{body}') == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b, c, d, e): ...", []),
        ("def f(a, b, c, d, e, *, f, g): ...", []),
        ("def f(a, b, /, c, d, e, f): ...", ["f"]),
        ("class C:\n    def m(self, a, b, c, d, e): ...", []),
        ("class C:\n    def m(self, a, b, c, d, e, f): ...", ["m"]),
        ("class C:\n    @staticmethod\n    def m(a, b, c, d, e, f): ...", ["m"]),
        ("async def f():\n    def g(a, b, c, d, e, f): ...", ["g"]),
    ],
)
def test_positional_parameters_are_counted_without_self(source: str, expected: list[str]) -> None:
    assert too_many_parameters(source) == expected
