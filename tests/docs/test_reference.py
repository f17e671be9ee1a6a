"""The reference is what the code says: written anew, it is what stands there."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from types import ModuleType

import pytest
from docs.generate import FOLDER, PAGES, diagram, reference
from docs.modules import layers
from tests.docs.documents import ROOT, blocks

import betimes

MODULES = [module.name for module in pkgutil.walk_packages(betimes.__path__, "betimes.")]


def test_the_reference_is_up_to_date() -> None:
    written = reference()
    there = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    assert sorted(there) == sorted(written)
    stale = [name for name in written if written[name] != there[name]]
    assert stale == [], "run ./run docs"


def test_everything_public_has_its_place_in_the_reference() -> None:
    text = "\n".join(reference()[name] for name in PAGES)
    missing = [name for name in betimes.__all__ if f"# {name}\n" not in text and f"`{name}(" not in text]
    assert missing == []


def test_the_diagram_has_a_way_from_each_state() -> None:
    lines = diagram().splitlines()
    for status in betimes.JobStatus:
        assert any(line.strip().startswith(f"{status.name} -->") for line in lines)


def test_the_page_on_the_architecture_has_the_layers_of_the_import_rules() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    drawn = next(block.text for block in blocks(page) if not block.language)
    lines = [re.split(r"  +", line)[0] for line in drawn.splitlines() if not line.startswith(" ")]
    assert [line.split(" | ") for line in lines] == layers()


@pytest.mark.parametrize("name", MODULES)
def test_the_sessions_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    public = {name: getattr(betimes, name) for name in betimes.__all__}
    names = public | vars(importlib.import_module("betimes.testing")) | standard_names() | vars(module)
    assert doctest.testmod(module, extraglobs=names).failed == 0


def standard_names() -> dict[str, ModuleType]:
    return {name: importlib.import_module(name) for name in ("asyncio", "threading", "time")}
