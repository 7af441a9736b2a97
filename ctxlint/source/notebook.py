"""Jupyter notebooks: the code cells of one, in order, are one module.

Between two cells, the text of the module has an empty line that is in no cell. IPython syntax (see ``magics``) is
replaced by something harmless of the same length, so every other character keeps its position in its cell. Cells are
counted from 1, including all kinds of cells, like in ruff.

Cells that Python does not read are excluded: those of another language, and those that begin with an indented line,
which IPython dedents.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.formats import Malformed, from_json
from ctxlint.source.magics import PLACEHOLDER, binds_names, is_python, without_magics
from ctxlint.source.notebook_json import elements, members, place_in, value_of, with_lines
from ctxlint.source.reading import NotPython, Undecodable, refusal
from ctxlint.source.source import Located, LocatedEdits, Position, Source, Span
from ctxlint.source.text_edits import Edit, apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_GAP = "\n"
_READ = ("cell_type", "metadata", "source")
_NOT_TEXT = pattern("[\0\ud800-\udfff]")


@record
class Cell:
    """A code cell, the ``number``-th of all cells; its source is at ``start`` to ``end`` in the JSON.

    ``before`` is the content in the file, ``text`` the content to write.
    """

    number: int
    start: int
    end: int
    before: str
    text: str

    @property
    def block(self) -> str:
        """The text with its last line terminated, as in the module."""
        return self.text + "\n"

    def edited(self, edits: Sequence[Edit]) -> Cell:
        """The cell after ``edits`` on its block."""
        block = apply_edits(self.block, edits)
        return replace(self, text=block.removesuffix("\n"))


@record
class Notebook(Source):
    """A notebook as a source: ``text`` is the module, ``document`` the JSON that was read."""

    document: str = ""
    cells: tuple[Cell, ...] = ()

    def __hash__(self) -> int:
        """Like the one of dataclasses, but without hashing each of the cells."""
        return hash((self.path, self.text))

    @cached_property
    def _starts(self) -> list[int]:
        """The offset at which the block of each cell starts in the module."""
        starts, at = [], 0
        for cell in self.cells:
            starts.append(at)
            at += len(cell.block) + len(_GAP)
        return starts

    @cached_property
    def _first_lines(self) -> list[int]:
        return [self.position(start).line for start in self._starts]

    def _cell_at(self, start: int) -> int:
        """The index of the cell that contains an offset of the module."""
        return max(bisect_right(self._starts, start) - 1, 0)

    @property
    def written(self) -> str:
        """The JSON, in which only the source of changed cells differs."""
        edits = [
            Edit(cell.start, cell.end, with_lines(self.document, cell.start, cell.end, cell.text))
            for cell in self.cells
            if cell.text != cell.before
        ]
        return apply_edits(self.document, sorted(edits))

    @property
    def has_cells(self) -> bool:
        """Whether it is a notebook."""
        return True

    @property
    def runs_other_code(self) -> bool:
        """Whether a magic binds names: ``%run``, ``%store``, ``%pylab``, or ``%%capture name``."""
        return any(map(binds_names, (cell.text for cell in self.cells)))

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each cell."""
        ends = (start + len(cell.text) for start, cell in zip(self._starts, self.cells))
        return tuple((first, self.position(end).line) for first, end in zip(self._first_lines, ends))

    def edited(self, edits: Sequence[Edit]) -> Notebook:
        """The notebook after ``edits``, which ``can_take`` accepts."""
        by_cell = self._by_cell(edits)
        cells = tuple(cell.edited(by_cell.get(index, ())) for index, cell in enumerate(self.cells))
        return _notebook(self.path, self.document, cells, bom=self.bom)

    def can_take(self, edits: Sequence[Edit]) -> bool:
        """Whether each edit is within one cell, and outside of IPython syntax."""
        return all(self._can_take(edit) for edit in edits)

    def _can_take(self, edit: Edit) -> bool:
        index = self._cell_at(edit.start)
        cell, offset = self.cells[index], self._starts[index]
        start, end = edit.start - offset, edit.end - offset
        if end > len(cell.block) or self.text[edit.start : edit.end] != cell.block[start:end]:
            return False
        magic_first = cell.text.lstrip().startswith("%%")
        return PLACEHOLDER.search(edit.content) is None and not (magic_first and "%%" not in cell.text[:start])

    def _by_cell(self, edits: Sequence[Edit]) -> dict[int, list[Edit]]:
        by_cell: dict[int, list[Edit]] = {}
        for edit in edits:
            index = self._cell_at(edit.start)
            offset = self._starts[index]
            by_cell.setdefault(index, []).append(Edit(edit.start - offset, edit.end - offset, edit.content))
        return by_cell

    def locate(self, span: Span) -> Located:
        """The cell that contains the start of ``span``, and the span there."""
        if not self.cells:
            return Located(self, span)
        index = max(bisect_right(self._first_lines, span.start.line) - 1, 0)
        above = self._first_lines[index] - 1
        start, end = (Position(place.line - above, place.column) for place in span)
        return Located(self._cell_source(index), Span(start, end), self.cells[index].number)

    def in_file(self, span: Span) -> Span:
        """The span of the code in the JSON."""
        if any(cell.text != cell.before for cell in self.cells):
            return read_notebook(self.path, self.written).in_file(span)
        located = self.locate(span)
        cell = next((each for each in self.cells if each.number == located.cell), None)
        if cell is None:
            return span
        written = Source(self.path, self.document)
        start, end = (
            place_in(self.document, cell.start, cell.end, located.source.offset(each)) for each in located.span
        )
        return Span(written.position(start), written.position(end))

    def start_of(self, number: int) -> int | None:
        """The offset of a cell in the module; None for an excluded one."""
        return next((start for cell, start in zip(self.cells, self._starts) if cell.number == number), None)

    def locate_edits(self, edits: Sequence[Edit]) -> Iterator[LocatedEdits]:
        """``edits``, sorted, cell by cell."""
        for index, mine in self._by_cell(edits).items():
            yield LocatedEdits(self._cell_source(index), tuple(mine), self.cells[index].number)

    def _cell_source(self, index: int) -> Source:
        """One cell as a text of its own, with the original code."""
        return Source(self.path, self.cells[index].block)

    def changes(self, after: Source) -> Iterator[tuple[str, Source, Source]]:
        """The cells that differ in ``after``, with the original code."""
        for old, new in zip(self.cells, after.cells if isinstance(after, Notebook) else ()):
            if old.text != new.text:
                texts = (each.text if each.text.endswith("\n") else each.block for each in (old, new))
                before, changed = (Source(self.path, text) for text in texts)
                yield f"{self.path}:cell {old.number}", before, changed


def read_notebook(path: str, document: str, *, bom: bool = False) -> Notebook:
    """The notebook whose JSON is ``document``.

    Raises:
        Undecodable: It is not a notebook.
        NotPython: It is in another language.
    """
    notebook = _parsed(document)
    version = notebook.get("nbformat")
    if type(version) is not int:
        raise Undecodable("The file is not a notebook: its JSON has no nbformat")
    if version < 4:
        raise Undecodable(
            f"The notebook is in format {version}; ctxlint reads format 4, which newer versions of Jupyter write"
        )
    language = _language(notebook.get("metadata"))
    if not _is_python(language):
        raise NotPython(f"a notebook in {language}")
    try:
        cells = tuple(_code_cells(document))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Undecodable("The file is not a notebook: its JSON has no list of cells with their sources") from error
    reason = refusal("\n".join(cell.text for cell in cells))
    if reason:
        raise Undecodable(reason)
    for cell in cells:
        if _NOT_TEXT.search(cell.text):
            raise Undecodable(
                f"Cell {cell.number} of the notebook contains a character that is not allowed in Python source"
            )
    return _notebook(path, document, cells, bom=bom)


def notebook_of(path: str, cells: Iterable[tuple[int, str]]) -> Notebook:
    """The notebook with these numbered code cells: one that is open in an editor, without any JSON."""
    python = tuple(Cell(number, 0, 0, text, text) for number, text in cells if is_python(text))
    return _notebook(path, "", python, bom=False)


def _notebook(path: str, document: str, cells: tuple[Cell, ...], *, bom: bool) -> Notebook:
    text = _GAP.join(without_magics(cell.block) for cell in cells)
    return Notebook(path, text, "utf-8", bom, document, cells)


def _parsed(document: str) -> dict[str, Any]:
    try:
        notebook = from_json(document)
    except Malformed as error:
        raise Undecodable(f"The file is not a notebook: {error}") from error
    if not isinstance(notebook, dict):
        raise Undecodable("The file is not a notebook: its JSON is not an object")
    return notebook


def _language(metadata: Any) -> str:
    """The language of the kernel according to the metadata; Python by default."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        record = metadata.get(key) if isinstance(metadata, dict) else None
        language = record.get(name) if isinstance(record, dict) else None
        if isinstance(language, str) and language:
            return language
    return "python"


def _is_python(language: str) -> bool:
    return language.lower().startswith(("python", "ipython"))


def _code_cells(document: str) -> Iterator[Cell]:
    """The cells that are part of the module, in order."""
    cells, _ = members(document, 0)["cells"]
    for number, (at, _) in enumerate(elements(document, cells), start=1):
        places = members(document, at)
        cell = {key: value_of(document, start) for key, (start, end) in places.items() if key in _READ}
        if cell["cell_type"] != "code":
            continue
        source = cell["source"]
        text = source if isinstance(source, str) else "".join(source)
        if is_python(text) and _is_python(_language_of_cell(cell.get("metadata"))):
            yield Cell(number, *places["source"], text, text)


def _language_of_cell(metadata: Any) -> str:
    """VS Code's metadata for a cell in another language than the notebook."""
    vscode = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = vscode.get("languageId") if isinstance(vscode, dict) else None
    return language if isinstance(language, str) else "python"
