"""Every link between the documents, and into the code, leads somewhere."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.docs.documents import DOCUMENTS, ROOT, anchors, links, name_of

ELSEWHERE = ("https://", "mailto:")


def broken(document: Path, text: str) -> list[str]:
    found = []
    for link in links(text):
        if link.startswith(ELSEWHERE):
            continue
        target, _, anchor = unquote(link).partition("#")
        path = (document.parent / target).resolve() if target else document
        is_there = path.exists() and path.is_relative_to(ROOT)
        if not is_there or (
            anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8"))
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken(document, document.read_text("utf-8")) == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    to_do = [ROOT / "README.md"]
    while to_do:
        document = to_do.pop()
        if document in reached or document.suffix != ".md" or not document.exists():
            continue
        reached.add(document)
        to_do += [
            (document.parent / unquote(link).partition("#")[0]).resolve()
            for link in links(document.read_text("utf-8"))
            if not link.startswith(ELSEWHERE)
        ]
    assert sorted(map(name_of, set(DOCUMENTS) - reached)) == []


def test_a_broken_link_is_found() -> None:
    text = "[a](nowhere.md), [b](README.md#no-such-heading), [c](../outside.md), [d](run) and `[e](code.md)`"
    assert broken(ROOT / "text.md", text) == ["nowhere.md", "README.md#no-such-heading", "../outside.md"]


def test_anchors_are_made_of_headings() -> None:
    text = "# The `one` idea: decide, act\n## Again\n## Again\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"the-one-idea-decide-act", "again", "again-1"}
