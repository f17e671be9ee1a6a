"""Reads Markdown: its fenced blocks, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Attributes:
        language: the info string's first word.
        options: the rest of it.
        text: what is inside.
        line: where the text begins, from 1.
    """

    language: str
    options: str
    text: str
    line: int


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        language, _, options = match["info"].strip().partition(" ")
        line = text.count("\n", 0, match.start("body")) + 1
        yield Block(language=language, options=options.strip(), text=match["body"], line=line)


def prose(text: str) -> str:
    """The text without its blocks, each replaced by as many empty lines."""
    return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def links(text: str) -> list[str]:
    return [match["target"] for match in _LINK.finditer(_CODE_SPAN.sub("", prose(text)))]


def anchors(text: str) -> set[str]:
    """The headings' anchors as code hosts make them: lower case, no punctuation, hyphens for blanks."""
    found: set[str] = set()
    for match in _HEADING.finditer(prose(text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["text"])
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 1
        anchor = slug
        while anchor in found:
            anchor, number = f"{slug}-{number}", number + 1
        found.add(anchor)
    return found
