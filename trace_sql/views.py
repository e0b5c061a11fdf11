"""The views of sql/: found by file, rendered, and put in the order they read each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.kept import find, keep, state_of
from trace_sql.literal import sql_string
from trace_sql.resources import data_folder

if TYPE_CHECKING:
    from trace_sql.contract import Contract

LAYERS = ("stage", "classify", "window", "assign", "measure", "attention", "report")
"""Folders of sql/ in reading order: a view reads its own or an earlier layer."""

_READ = r"\b(?:from|join)\s+([a-z_][a-z0-9_]*)"
_COMMENT = r"--[^\n]*"


class View:
    """One file of sql/: its text is a bare SELECT (a Jinja template), its stem the name.

    `keep` is what its head says after `keep:`: "", "yes", "store" or "session". `reads` has what
    stands behind FROM or JOIN: views, tables and its own CTEs. `is_template` says whether it has
    Jinja marks, so that rendering is needed at all.
    """

    def __init__(self, path: Path, keep: str, is_template: bool, reads: Iterable[str]) -> None:
        self.name = path.stem
        self.layer = path.parent.name
        self.keep = keep
        self.is_template = is_template
        self.reads = frozenset(reads)
        self._path = path

    @cached_property
    def text(self) -> str:
        return self._path.read_text(encoding="utf-8")

    @property
    def contract(self) -> Contract:
        """The contract in the file's head."""
        from trace_sql.contract import parse_contract

        return parse_contract(self.name, self.text)


@cache
def load_views() -> dict[str, View]:
    """Return every view under sql/<layer>/, by name. Raises ValueError for two of one name.

    What their texts say of them is kept: to read all of these takes longer than most questions.
    """
    folder = data_folder("sql")
    name = f"views-{state_of(folder)}.json"
    try:
        views = [View(folder / place, *said) for place, said in find(name)]
        if not views:
            raise ValueError
    except (TypeError, ValueError):
        known = [(f"{path.parent.name}/{path.name}", _said(path)) for path in _paths(folder)]
        keep(name, known, 2)
        views = [View(folder / place, *said) for place, said in known]
    found = {view.name: view for view in views}
    if len(found) < len(views):
        twice = next(view.name for view in views if found[view.name] is not view)
        raise ValueError(f"two views are named {twice}")
    return found


def _paths(folder: Path) -> Iterator[Path]:
    for layer in LAYERS:
        yield from sorted((folder / layer).glob("[!.]*.sql"))


def _said(path: Path) -> tuple[str, bool, list[str]]:
    """Return what a view's text says of it: keep, is_template and reads."""
    text = path.read_text(encoding="utf-8")
    head = text[: text.find("\n--\n")]
    keep = head.rpartition("\n-- keep: ")[2].strip() if "\n-- keep: " in head else ""
    reads = re.findall(_READ, re.sub(_COMMENT, "", text).lower())
    return keep, "{{" in text or "{%" in text, sorted(set(reads) - {path.stem})


def public_views() -> list[View]:
    """Return the views a session offers: all but those kept only while a trace is analysed."""
    return [view for view in load_views().values() if view.keep != "yes"]


def sources(name: str) -> frozenset[str]:
    """Names that the view reads after FROM or JOIN: views, tables and its own CTEs."""
    return load_views()[name].reads


@cache
def roots(name: str) -> frozenset[str]:
    """Names that the view reads in the end, which are no views; of anything else the name."""
    if name not in load_views():
        return frozenset({name})
    return frozenset().union(*map(roots, sources(name)))


def ordered(targets: Iterable[str]) -> list[View]:
    """The views that `targets` need, themselves included, each after what it reads.

    Raises ValueError where views read each other in a circle.
    """
    views = load_views()
    done: dict[str, View] = {}
    open_names: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in open_names:
            raise ValueError(f"views read each other: {' -> '.join([*open_names, name])}")
        open_names.append(name)
        for source in sorted(sources(name) & views.keys()):
            visit(source)
        open_names.pop()
        done[name] = views[name]

    for target in targets:
        visit(target)
    return list(done.values())


def render(view: View, values: Mapping[str, Any]) -> str:
    """The view's SQL with the template filled; an undefined name is an error."""
    if not view.is_template:
        return view.text
    import jinja2

    return str(_environment(jinja2).from_string(view.text).render(values))


@cache
def _environment(jinja2: Any) -> Any:
    # Autoescape is for HTML; text enters SQL only through the `quoted` filter.
    environment = jinja2.Environment(  # noqa: S701
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(Path(data_folder("sql"))),
    )
    environment.filters["quoted"] = sql_string
    return environment
