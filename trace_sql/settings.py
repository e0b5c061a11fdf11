"""What a user said about a trace: how to split it, and what to call it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Settings(NamedTuple):
    """What a user said about a trace; None (in `tags` no key) means not said."""

    run: str | None = None
    tags: dict[str, str] | None = None
    config_path: str | None = None
    config: dict[str, Any] | None = None
    """The parsed config.json of the model."""
    profile: str | None = None
    num_layers: int | None = None
    anchor_kernel: str | None = None
    blocks_per_layer: int | None = None
    anchor_offset: int | None = None
    pid: str | None = None
    device: int | None = None
    phase: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    capture: str | None = None
    """trace_id of the graph-capture trace that belongs to this one."""
    name: str | None = None
    paths: list[str] | None = None
    """Further files of this content, as labels."""

    def given(self) -> dict[str, Any]:
        """Return the settings that were given, by name."""
        return {key: value for key, value in self._asdict().items() if value is not None}

    def merged(self, newer: Settings) -> Settings:
        """Return these settings with what `newer` gives in their place.

        Tags are replaced one by one, and paths are added.
        """
        given = newer.given()
        if newer.tags is not None:
            given["tags"] = {**(self.tags or {}), **newer.tags}
        if newer.paths is not None:
            given["paths"] = list(dict.fromkeys([*(self.paths or []), *newer.paths]))
        return self._replace(**given)
