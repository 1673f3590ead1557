"""Where options are that had another name or another place: errors say so."""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("headroom", "shedder", "catch_up", "stale", "stw"), ("shedding", "Shedding")),
    **dict.fromkeys(("profile", "learn", "shared"), ("costs", "Costs")),
    "retention": ("checkpoint", "Checkpoint"),
}
"""By option: the argument of `jt.start` that has it now, and the class of that argument."""

MOVED_ARGUMENTS: Mapping[str, str] = {
    **{name: f"it is in {group}=jt.{kind}({name}=...)" for name, (group, kind) in GROUPS.items()},
    "metrics_port": "it is called metrics, such as metrics=9100",
    "statics": "it is called tables",
    "rejects": "it is called dead_letters",
}
"""By argument that `jt.start` has no more: where it is."""

MOVED_KEYS: Mapping[str, str] = {
    **{
        f"run.{name}": f"it is in run.{group}, as in `{group}: {{{name}: ...}}`"
        for name, (group, _) in GROUPS.items()
        if name not in ("profile", "shared")
    },
    "run.statics": "it is called run.tables",
    "run.rejects": "it is called run.dead_letters",
}
"""By key that a file has no more: where it is."""
