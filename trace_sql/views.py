"""The views of sql/: found by file, rendered, and put in the order they read each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.literal import sql_string
from trace_sql.resources import data_folder

if TYPE_CHECKING:
    from trace_sql.contract import Contract

LAYERS = ("stage", "classify", "window", "assign", "measure", "attention", "report")
"""Folders of sql/ in reading order: a view reads its own or an earlier layer."""


@dataclass(frozen=True)
class View:
    """One file of sql/: its text is a bare SELECT (a Jinja template), its stem the name."""

    name: str
    layer: str
    text: str

    @property
    def contract(self) -> Contract:
        """The contract in the file's head."""
        from trace_sql.contract import parse_contract

        return parse_contract(self.name, self.text)

    @cached_property
    def keep(self) -> str:
        """What the head says after `keep:`: "", "yes", "store" or "session"."""
        head = self.text[: self.text.find("\n--\n")]
        return head.rpartition("\n-- keep: ")[2].strip() if "\n-- keep: " in head else ""

    @property
    def is_template(self) -> bool:
        """Whether the text has Jinja marks, so that rendering is needed at all."""
        return "{{" in self.text or "{%" in self.text


@cache
def load_views() -> dict[str, View]:
    """Read every view under sql/<layer>/, by name. Raises ValueError for two of one name."""
    found: dict[str, View] = {}
    for layer in LAYERS:
        for path in sorted((data_folder("sql") / layer).glob("*.sql")):
            if path.stem in found:
                raise ValueError(f"two views are named {path.stem}")
            found[path.stem] = View(path.stem, layer, path.read_text(encoding="utf-8"))
    return found


def public_views() -> list[View]:
    """Return the views a session offers: all but those kept only while a trace is analysed."""
    return [view for view in load_views().values() if view.keep != "yes"]


_READ = re.compile(r"\b(?:from|join)\s+([a-z_][a-z0-9_]*)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")


@cache
def sources(name: str) -> frozenset[str]:
    """Names that the view reads after FROM or JOIN: views, tables and its own CTEs."""
    text = _COMMENT.sub("", load_views()[name].text)
    return frozenset(match.lower() for match in _READ.findall(text)) - {name}


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
