"""One reading of a text: where it stands, whether it is trusted, and what of it is damaged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from trace_sql.losses import DETAIL, Loss, Losses
from trace_sql.source import Source
from trace_sql.text_window import TextWindow

Count = Callable[[bytes], int | None]
"""Returns the number of elements of what stands inside a JSON list, None where it is no JSON."""


class IrregularError(Exception):
    """The text is not what was trusted to be there; with `count` it can be read."""


class TextReading(ABC):
    """What a document and the lists in it share.

    Damage is noted at once, with the place where `window` stands, in `losses`; only that of the
    document `number` of the file.
    """

    def __init__(self, source: Source, losses: Losses, number: int, count: Count | None) -> None:
        self.window = TextWindow(source)
        self.count = count
        self.n_documents = 0
        """Documents that have begun."""
        self.n_counted = 0
        """Events of the pieces that were checked."""
        self.separator = ""
        """What stands between two elements of the pieces that were not checked."""
        self.trusting = False
        """Whether the end of the list was only assumed."""
        self._source = source
        self._number = number
        self._losses = losses
        self._pending: list[Loss] = []
        """What was lost of the beginning of a next document, which may not come."""
        self._cut: set[int] = set()
        """Documents that were found to be cut."""

    @abstractmethod
    def members(self) -> Iterator[bytes]:
        """Read an object behind its `{`, and yield the pieces of lists of events in it."""

    def begin_document(self) -> int:
        """Count a document, and return its number."""
        number = self.n_documents
        self.n_documents += 1
        if number > 0 and self.count is None:
            raise IrregularError
        self._pending.clear()
        return number

    def end(self) -> None:
        """Note what is known to be damage only now that the text is at its end."""
        for loss in self._pending:
            self._losses.add(loss)
        if self._source.damage and self._number not in self._cut:
            self.lose(self._number, "damaged_stream", 0, detail=self._source.damage)

    def cut(self, number: int, size: int, inside: str, event: int | None = None) -> None:
        """Note that the text ends, `size` bytes from here, inside of something."""
        if number in self._cut:
            return
        self._cut.add(number)
        end = self.window.offset + size
        why = f" ({self._source.damage})" if self._source.damage else ""
        detail = f"the text ends at byte {end}, inside {inside}{why}"
        self.lose(number, "truncated", size, event=event, detail=detail)

    def lose(
        self,
        number: int,
        kind: str,
        size: int,
        *,
        repaired: bool = False,
        event: int | None = None,
        detail: str | None = None,
        begin: int | None = None,
    ) -> None:
        """Note a loss of the next `size` bytes, or of those from the byte `begin`."""
        if self.trusting:
            raise IrregularError
        coming = number == self.n_documents == self._number + 1
        if number != self._number and not coming:
            return
        window = self.window
        if detail is None:
            detail = window.bytes(min(size, DETAIL)).decode(errors="replace")
        offset = window.offset if begin is None else begin
        loss = Loss(kind, repaired, event, offset, window.line_of(offset), size, detail)
        if coming:
            self._pending.append(loss)
        else:
            self._losses.add(loss)
