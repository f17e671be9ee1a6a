"""Every test that a document names is there."""

from __future__ import annotations

import ast
import re
from fnmatch import filter as filter_names
from pathlib import Path

import pytest
from tests.docs.documents import DOCUMENTS, ROOT, name_of, prose

NAMED = re.compile(r"`(?:(?P<file>[\w/.-]+\.py)::)?(?P<test>test_\w+\*?)`")
EXPLAINED = {"concurrency.md", "guarantees.md"}  # what they claim, they name the tests of


def found_in(folder: Path) -> dict[str, set[str]]:
    """The names of the test functions by file, relative to the project's root."""
    return {
        path.relative_to(ROOT).as_posix(): {
            node.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        }
        for path in folder.rglob("*.py")
    }


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """All tests there are; those of the contracts stand in the package, since users run them too."""
    return found_in(ROOT / "tests") | found_in(ROOT / "src" / "betimes" / "testing")


def named(text: str) -> list[tuple[str | None, str]]:
    """The tests a text names, each with its file if it is said; a star at the end stands for any ending."""
    return [(match["file"], match["test"]) for match in NAMED.finditer(prose(text))]


def missing(text: str, known: dict[str, set[str]]) -> list[str]:
    everywhere = set().union(*known.values())
    return [
        test
        for file, test in named(text)
        if not filter_names(everywhere if file is None else known.get(file, set()), test)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_the_tests_that_a_document_names_are_there(document: Path, known: dict[str, set[str]]) -> None:
    assert missing(document.read_text("utf-8"), known) == []


def test_the_pages_on_guarantees_and_concurrency_name_their_tests() -> None:
    for document in DOCUMENTS:
        if document.name in EXPLAINED:
            assert len(named(document.read_text("utf-8"))) >= 20


def test_a_test_that_is_not_there_is_found(known: dict[str, set[str]]) -> None:
    here = "tests/docs/test_named_tests.py"
    text = f"`test_no_such_thing`, `{here}::test_links_lead_somewhere`, `test_links_lead_somewhere`"
    assert missing(text, known) == ["test_no_such_thing", "test_links_lead_somewhere"]
    assert missing("`test_no_such_*` and `test_links_*`", known) == ["test_no_such_*"]
