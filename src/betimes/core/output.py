"""What a program writes to one of its streams: its end, kept within a bound, and its lines, as they come."""

from __future__ import annotations

import codecs

from betimes.core.codec import MAX_BYTES, encode_json
from betimes.core.log import LINE_LENGTH, LINES_KEPT

LARGEST_ENCODED = MAX_BYTES // 2 - 1024
"""Bytes that the kept text may take as JSON: two of them fit into one result."""

_LINE_KEPT = LINE_LENGTH + 1  # so that it can be seen that more was written
_LONGEST_CHARACTER = 4
_CONTINUATION = range(0x80, 0xC0)


class Output:
    """Takes the bytes of one stream; mutable, since it gathers.

    Its memory is bounded, however much is written: twice what is kept, and one unfinished line.

    Attributes:
        is_truncated: whether more was written than is kept.
    """

    __slots__ = ("_decoder", "_kept", "_most", "_unfinished", "is_truncated")

    def __init__(self, most: int) -> None:
        """Keep so many bytes, the newest."""
        self._most = most
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unfinished = ""
        self.is_truncated = False

    def take(self, data: bytes) -> str | None:
        """Keep what was written, and return the lines that it finishes; None: none.

        Of a burst, only as many lines as a log keeps.
        """
        self._keep(data)
        text = self._unfinished + self._decoder.decode(data)
        # A carriage return at the very end may be the first half of a line's end.
        end = max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1
        self._unfinished = text[end : end + _LINE_KEPT]
        if not end:
            return None
        lines = text[:end].splitlines()
        return "\n".join(lines[-LINES_KEPT:])

    def rest(self) -> str | None:
        """Return the last line, if it has no end; nothing more will be written."""
        text = self._unfinished + self._decoder.decode(b"", final=True)
        self._unfinished = ""
        return text or None

    def text(self) -> str:
        """Return what is kept, as UTF-8 with replacements, such that it fits into a result."""
        kept = bytes(self._kept[max(len(self._kept) - self._most, 0) :])
        if self.is_truncated:
            kept = kept[_inside_a_character(kept) :]
        text = kept.decode("utf-8", "replace")
        while len(encode_json(text)) > LARGEST_ENCODED:
            text = text[len(text) // 2 :]
            self.is_truncated = True
        return text

    def _keep(self, data: bytes) -> None:
        kept, most = self._kept, self._most
        kept += data[max(len(data) - most, 0) :]
        if len(data) > most or len(kept) > most:
            self.is_truncated = True
            if len(kept) > 2 * most:
                del kept[: len(kept) - most]


def _inside_a_character(data: bytes) -> int:
    """Count the bytes at the beginning that belong to a character which was cut."""
    count = 0
    for byte in data[: _LONGEST_CHARACTER - 1]:
        if byte not in _CONTINUATION:
            break
        count += 1
    return count
