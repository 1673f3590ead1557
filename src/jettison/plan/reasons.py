"""Why rows were shed: what a plan says of all of them, or of those on one arc, and the kinds of reasons for metrics."""

from __future__ import annotations

from jettison.plan.drops.window import Window
from jettison.plan.plan import DEGRADED, PAUSED, Plan

WINDOWS_EARLIER = "windows decided earlier"
"""The fate of a window never changes: rows of windows that an earlier plan dropped go while no new ones are dropped."""

READING = "reading alone is too much"
NEWEST = "skipped to the newest"
CATCHING_UP = "catching up"
NOT_BELIEVED = "costs are not believed yet"
UNREAD = "passed over unread"
NO_CERTIFIED_PLAN = "no plan could be certified"
STALE_UNREAD = "stale, passed over unread"

KINDS = (
    "within_budget",
    "single_large_batch",
    "overload",
    "measured_late",
    "stale",
    "infeasible",
    "cannot_help",
    "reading",
    "windows_decided_earlier",
    "unread",
    "skipped_to_newest",
    "catching_up",
    "costs_on_trial",
    "not_certified",
    "agreed",
    "other",
)
"""What `kind_of_reason` gives: a bounded list, fit for the label of a metric."""

_NOTHING_TO_SHED = (
    "within_budget",
    "single_large_batch",
    "cannot_help",
    "catching_up",
    "costs_on_trial",
    "not_certified",
)

_BEGINNINGS = {
    "predicted within budget": "within_budget",
    "a single large batch": "single_large_batch",
    "overload": "overload",
    "measured late": "measured_late",
    STALE_UNREAD: "unread",
    "stale": "stale",
    "infeasible": "infeasible",
    "shedding cannot help": "cannot_help",
    READING: "reading",
    NEWEST: "skipped_to_newest",
    CATCHING_UP: "catching_up",
    NOT_BELIEVED: "costs_on_trial",
    NO_CERTIFIED_PLAN: "not_certified",
    WINDOWS_EARLIER: "windows_decided_earlier",
    UNREAD: "unread",
    "agreed with other nodes": "agreed",
}


def reason_on(plan: Plan, arc: str) -> str:
    """Why a plan drops rows on an arc: stale rows alone, windows that an earlier plan has decided, else its reason.

    >>> from jettison.plan.drops.random import Random
    >>> from jettison.plan.drops.window import Fate
    >>> plan = Plan({"busy>out": Window({"busy": Fate(60_000_000, drop_share=0.0)}, 0.5, of="busy"),
    ...              "trips": Random(0.5)}, reason="overload", stale={"trips>board": 100.0})
    >>> [reason_on(plan, arc) for arc in ("busy>out", "trips", "trips>board")]
    ['windows decided earlier', 'overload', 'stale']
    """
    drop = plan.drops.get(arc)
    if drop is None and arc in plan.stale:
        return "stale"
    if isinstance(drop, Window) and not any(_goes_on(fate.drop_share, fate.cells) for fate in drop.fates.values()):
        return WINDOWS_EARLIER
    return plan.reason


def _goes_on(drop_share: float, cells: object) -> bool:
    """Whether more windows are to go from now on."""
    return drop_share > 0 or any(share > 0 for share in getattr(cells, "shares", ()))


def with_windows_decided_earlier(reason: str) -> str:
    """The reason of a plan that drops nothing of its own, while windows decided earlier still go.

    >>> with_windows_decided_earlier("predicted within budget")
    'windows decided earlier (now: predicted within budget)'
    >>> with_windows_decided_earlier("overload; busy: what was decided by other rules runs out first")
    'overload; busy: what was decided by other rules runs out first'
    """
    return f"{WINDOWS_EARLIER} (now: {reason})" if kind_of_reason(reason) in _NOTHING_TO_SHED else reason


def with_below_minimum(reason: str, plan: Plan) -> str:
    """The reason of a plan that takes outputs below their minimum accuracy, which it names.

    >>> with_below_minimum("overload", Plan(below_minimum={"map": "paused"}))
    'overload; paused, so that the minima of others fit: map'
    """
    named = {how: [name for name, each in plan.below_minimum.items() if each == how] for how in (PAUSED, DEGRADED)}
    if named[PAUSED]:
        reason += f"; paused, so that the minima of others fit: {', '.join(named[PAUSED])}"
    if named[DEGRADED]:
        reason += f"; below their minimum alike, as not all minima fit: {', '.join(named[DEGRADED])}"
    return reason


def kind_of_reason(reason: str) -> str:
    """The kind of a reason, one of `KINDS`.

    >>> kind_of_reason("overload: dropping as many windows as may go is not enough, table closed"), kind_of_reason("?")
    ('overload', 'other')
    """
    return next((kind for words, kind in _BEGINNINGS.items() if reason.startswith(words)), "other")
