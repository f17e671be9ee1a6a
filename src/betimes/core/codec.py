"""One type to JSON bytes and back, exactly or not at all.

msgspec encodes; what it cannot express, or only with a loss, is a `PayloadError` that names the place.
Decoding makes values of the annotated types and nothing else: no name that is read is looked up or imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from betimes.core.exact import Fault, find_change, find_unstorable
from betimes.core.wording import shown
from betimes.errors import PayloadError

MAX_BYTES = 16 * 1024 * 1024
"""How large the arguments of a job may be as JSON, and its result likewise."""

_PLACE = re.compile(r"^(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"Expected (`.*`), got (`.*`)", re.DOTALL)
_NAME = re.compile(r"\w+")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")


def _encode_hook(value: Any) -> Any:
    """Paths are their text; everything else that msgspec does not know is refused."""
    if hasattr(type(value), "__fspath__"):
        return str(value)
    raise TypeError(f"objects of type {type(value).__qualname__} are not supported")


def _decode_hook(kind: type, data: Any) -> Any:
    """A path is made of its text; for abstract types such as `Iterable`, msgspec checks the plain data."""
    return kind(data) if isinstance(data, str) and hasattr(kind, "__fspath__") else data


encode_json = msgspec.json.Encoder(enc_hook=_encode_hook).encode


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type.

    Raises:
        TypeError: msgspec cannot tell the type's values apart in JSON.
    """
    return msgspec.json.Decoder(kind, dec_hook=_decode_hook)


class Codec:
    """Encodes values so that decoding gives them back, or refuses them.

    Args:
        kind: the type to decode into.
        subject: what the values are, such as `fetch() argument`; begins every message.
        root: the value's own name in paths; empty where its fields are the names.
        max_bytes: the largest encoding that is accepted.
        remarks: more to say about some of the fields (or the root), by name.
    """

    __slots__ = ("_decoder", "_depth", "_max_bytes", "_remarks", "_root", "_subject")

    def __init__(
        self,
        kind: Any,
        *,
        subject: str,
        root: str = "",
        max_bytes: int = MAX_BYTES,
        remarks: Mapping[str, str] | None = None,
    ) -> None:
        self._decoder = decoder_of(kind)
        self._subject = subject
        self._root = root
        self._depth = 0 if root else -1  # A call's arguments are no object of the caller's.
        self._max_bytes = max_bytes
        self._remarks = remarks or {}

    def encode(self, value: Any) -> bytes:
        """Return the value as JSON, having seen that it comes back.

        Raises:
            PayloadError: it cannot be stored exactly, or is too large or too deep.
        """
        try:
            payload = encode_json(value)
        except Exception as error:  # the encoder calls the value's own methods, which may raise anything
            fault = find_unstorable(value, encode_json, self._depth) or Fault(
                "", f"cannot be stored: {error}"
            )
            raise self._refusal(fault) from error
        return self.check(value, payload)

    def check(self, value: Any, payload: bytes) -> bytes:
        """Return the payload, which was encoded from the value, having seen that it comes back.

        Raises:
            PayloadError: as for `encode`.
        """
        if len(payload) > self._max_bytes:
            size = f"would be {len(payload):,} bytes of JSON; at most {self._max_bytes:,} are stored"
            raise self._refusal(Fault("", f"{size}: keep the data elsewhere, and pass where it is"))
        try:
            back = self._decoder.decode(payload)
        except Exception as error:  # so may the constructors of annotated types
            fault = find_unstorable(value, encode_json, self._depth) or _locate(
                str(error), payload, self._decoder
            )
            raise self._refusal(fault) from error
        changed = find_change(value, back, self._depth)
        if changed is not None:
            raise self._refusal(changed)
        return payload

    def decode(self, payload: bytes) -> Any:
        """Return the value of an encoding that `encode` made.

        Raises:
            PayloadError: the bytes are damaged, or were made for another type.
        """
        try:
            return self._decoder.decode(payload)
        except Exception as error:  # the constructors of annotated types may raise anything
            fault = _locate(str(error), payload, self._decoder)
            raise self._refusal(fault, " (it was stored for another version of the function?)") from error

    def _refusal(self, fault: Fault, remark: str = "") -> PayloadError:
        path = f"{self._root}{fault.path}".lstrip(".*")
        place = f" `{path}`" if path else "s"
        name = _NAME.match(path)
        more = self._remarks.get(name[0], "") if name else ""
        return PayloadError(f"{self._subject}{place} {fault.reason}{remark}{more}", path=path)


def _locate(text: str, payload: bytes, decoder: msgspec.json.Decoder[Any]) -> Fault:
    """Read place and reason out of msgspec's message, such as "Expected `int`, got `str` - at `$.n`"."""
    place = _PLACE.fullmatch(text)
    assert place is not None
    expected = _EXPECTED.fullmatch(place["reason"])
    reason = f"must be {expected[1]}, not {expected[2]}" if expected else f"cannot be read: {place['reason']}"
    path = place["path"] or ""
    if place["key"]:
        path, reason = f"{path}[...]", f"has a key that {reason}"
    return Fault(_with_keys(path, payload, decoder) if "[...]" in path else path, reason)


def _with_keys(path: str, payload: bytes, decoder: msgspec.json.Decoder[Any]) -> str:
    """Replace each `[...]`, msgspec's word for some entry of a dict, by the key of the first bad entry."""
    tree = node = msgspec.json.decode(payload)
    spelled = ""
    try:
        for step in _STEP.finditer(path):
            if step["name"]:
                node = node[step["name"]]
            elif step["index"]:
                node = node[int(step["index"])]
            else:
                key = _first_bad_key(node, tree, decoder)
                node = node[key]
                spelled += f"[{shown(key)}]"
                continue
            spelled += step[0]
    except (LookupError, TypeError, AttributeError):  # Renamed fields may have any name, dots included.
        return path
    return spelled


def _first_bad_key(node: dict[str, Any], tree: Any, decoder: msgspec.json.Decoder[Any]) -> str:
    """Find, by halving, the first entry that alone keeps the tree from decoding; nothing else stays in it."""
    items = list(node.items())
    while len(items) > 1:
        half = items[: len(items) // 2]
        node.clear()
        node.update(half)
        items = items[len(half) :] if _decodes(tree, decoder) else half
    node.clear()
    node.update(items)
    return items[0][0]


def _decodes(tree: Any, decoder: msgspec.json.Decoder[Any]) -> bool:
    try:
        decoder.decode(msgspec.json.encode(tree))
    except Exception:  # noqa: BLE001 - constructors of annotated types may raise anything
        return False
    return True
