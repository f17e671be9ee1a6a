"""Reads the docstrings of the code (Google's style) and writes them as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")
_ENTRY = re.compile(r"(?P<names>[\w.`*]+(?:, [\w.`*]+)*): (?P<text>.*)", re.DOTALL)


@dataclass(kw_only=True)
class Docstring:
    """A docstring in parts: the prose, and each section's entries as (names, text)."""

    prose: str = ""
    sections: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    example: str = ""

    def entries(self, section: str) -> dict[str, str]:
        """Return the text of each name of a section; names that share one text each get it."""
        return {
            name.strip("`"): text
            for names, text in self.sections.get(section, [])
            for name in names.split(", ")
        }


def docstring_of(thing: object) -> Docstring:
    """Take an object's docstring apart."""
    text = inspect.getdoc(thing)
    assert text, f"{thing!r} has no docstring"
    parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", text + "\n", flags=re.MULTILINE)
    found = Docstring(prose=parts[0].strip())
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        # What stands at the left margin again is prose that goes on.
        inside, outside = _split_indented(body)
        if name == "Example":
            found.example = textwrap.dedent(inside).strip("\n")
        elif name == "Returns":
            found.sections[name] = [("", re.sub(r"\s+", " ", inside).strip())]
        else:
            found.sections[name] = [_entry(each) for each in _items(textwrap.dedent(inside))]
        found.prose = f"{found.prose}\n\n{outside}".strip()
    return found


def _split_indented(body: str) -> tuple[str, str]:
    lines = body.splitlines()
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return "\n".join(lines[:end]), "\n".join(lines[end:]).strip()


def _items(text: str) -> Iterator[str]:
    """The entries of a section: each begins at the margin, and goes on in the lines that are indented."""
    for block in re.split(r"\n(?=\S)", text.strip("\n")):
        if block.strip():
            yield re.sub(r"\s+", " ", block).strip()


def _entry(item: str) -> tuple[str, str]:
    match = _ENTRY.fullmatch(item)
    return (match["names"], match["text"]) if match else ("", item)


def members(kind: type[Enum]) -> dict[str, str]:
    """Return the texts that stand below the members of an enumeration."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    texts: dict[str, str] = {}
    for before, after in pairwise(body):
        if (
            isinstance(before, ast.Assign)
            and isinstance(before.targets[0], ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            texts[before.targets[0].id] = inspect.cleandoc(str(after.value.value))
    return texts


# --- Markdown


def cell(text: str) -> str:
    """Make text fit a table's cell: on one line, its bars escaped."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def code(text: object) -> str:
    """Write text as code, within a line."""
    return f"`{text}`"


def signature_of(fn: Callable[..., Any], *, name: str | None = None) -> str:
    """Write how to call a function: its parameters with their defaults, without types."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(fn).parameters.values()
        if each.name not in {"self", "cls", "unknown"}
    ]
    bare = inspect.Signature(parameters)
    return f"{name or getattr(fn, '__name__', '')}{bare}".replace("(not given)", "...")


def settings_table(fn: Callable[..., Any], texts: dict[str, str]) -> str:
    """Write the parameters of a function as a table: name, type, default, meaning."""
    rows = []
    for each in inspect.signature(fn).parameters.values():
        if each.name in {"self", "cls", "unknown", "fn"} or each.kind is each.VAR_KEYWORD:
            continue
        kind = "" if each.annotation is each.empty else code(_type_name(each.annotation))
        rows.append((code(each.name), kind, _default(each), texts[each.name]))
    return table(("option", "type", "default", "what it does"), rows)


def _type_name(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "(required)"
    text = repr(parameter.default).replace("<class 'Exception'>", "Exception")
    return "" if text == "(not given)" else code(text)


def entries_table(heads: tuple[str, str], entries: dict[str, str]) -> str:
    """Write names and their texts."""
    return table(heads, [(code(name), text) for name, text in entries.items()])


def described(thing: Any, *, title: str, level: int = 2) -> str:
    """Write a class or a function in full: prose, arguments, what it gives and raises, its example."""
    doc = docstring_of(thing)
    parts = [f"{'#' * level} {title}", doc.prose]
    for name in ("Args", "Attributes"):
        entries = doc.sections.get(name, [])
        if entries:
            parts.append("\n".join(_bullet(names, text) for names, text in entries))
    for name, verb in (("Returns", "Returns"), ("Raises", "Raises")):
        entries = doc.sections.get(name, [])
        if entries:
            parts.append(f"{verb}\n\n" + "\n".join(_bullet(names, text) for names, text in entries))
    if doc.example:
        parts.append(example(doc.example))
    return "\n\n".join(part for part in parts if part)


def _bullet(names: str, text: str) -> str:
    shown = ", ".join(code(name.strip("`")) for name in names.split(", ")) if names else ""
    return f"- {shown}: {text}" if shown else f"- {text}"


def example(text: str) -> str:
    """Write an example: a session as such, other code as an excerpt, for it does not stand alone."""
    kind = "pycon" if text.startswith(">>>") else "python no-run: an excerpt from a docstring"
    return f"```{kind}\n{text}\n```"
