"""``derive bound --json``: classes, certificates, regimes and bounds as one object; formulas as text that SymPy reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.growth.cone import Cone
from derive.growth.parameters import Condition
from outputs.notation import chain, regime

if TYPE_CHECKING:
    from derive.growth import Lead
    from derive.growth.dominance import Dominated
    from outputs.account import Account
    from outputs.bounds import Bounds

Json = dict[str, Any]


def as_json(answer: Bounds) -> Json:
    """The object that ``derive bound --json`` prints; see ``schema/bound.json``."""
    return {
        "variant": answer.request.variant.name,
        "machine": answer.machine.id if answer.machine else None,
        "mask": answer.request.mask,
        "unit": "elements across the boundary of one SM's fast memory of M elements; bytes are named so",
        "assumed": _conditions(answer.where),
        "parameters": {name: _plain(n) for name, n in sorted(answer.at_numbers.values.items())},
        "schedules": {name: _schedule(answer, name) for name in answer.classes},
        "refused": dict(answer.refused),
        "best": [
            {
                "regime": _conditions(r.conditions),
                "schedule": r.schedules[0],
                "schedules": list(r.schedules),
                "theta": str(r.monomial),
            }
            for r in answer.best
        ],
        "levels": {
            name: {
                "together": nested.together,
                "levels": [
                    {"capacity": str(level.capacity), "theta": [str(m) for m in level.growth.monomials]}
                    for level in nested.levels
                ],
            }
            for name, nested in answer.levels.items()
        },
        "equal_where": [
            {"schedules": list(pair), "left": str(e.left), "right": str(e.right)}
            for pair, e in answer.equalities.items()
        ],
        "lower_bounds": [
            {
                "theta": str(b.monomial),
                "regime": _where(answer, b.region),
                "constant": None if b.constant is None else str(b.constant),
                "less": str(b.less),
                "status": b.status,
                "how": b.how,
                "source": b.source,
                "note": b.note,
                "weights": {name: str(w) for name, w in b.weights.items()},
            }
            for b in answer.below.lower
        ],
    }


def _schedule(answer: Bounds, name: str) -> Json:
    found = answer.classes[name]
    shrinking = found.leads[-1]
    here = answer.at_numbers.leading(name)
    return {
        "theta": [str(m) for m in found.monomials],
        "regime": regime(found, str),
        "needs": _conditions(found.needs),
        "tiles": _tiles(shrinking),
        "constant": None if shrinking.constant is None else str(shrinking.constant),
        "certificate": {"dual": {row: str(w) for row, w in shrinking.weights.items()}, "primal": _tiles(shrinking)},
        "status": "derived",
        "granted": [k.name for k in answer.granted(name)],
        "leads": [_lead(answer, lead) for lead in found.leads],
        "dropped": [_dominated(d) for d in found.dropped],
        "workspace": [str(m) for m in answer.workspace(name)],
        "gaps": [
            {
                "monomial": str(g.lead.monomial),
                "regime": _where(answer, g.region),
                "bound": str(g.bound.monomial),
                "status": g.bound.status,
                "ratio": str(g.ratio),
                "tight": g.tight,
                "attainable": not g.below,
            }
            for g in answer.below.gaps(name)
        ],
        "optimum": [
            {
                "kernel": kernel.name,
                "tiles": {str(t): str(e) for t, e in best.tiles.items()},
                "elements": str(best.traffic),
                "valid": "each tile between 1 and its extent; many trips",
            }
            for kernel, best in answer.optima[name].items()
        ],
        "here": {
            "monomial": None if here is None else str(here.monomial),
            "leading_term_bytes": answer.at_numbers.leading_bytes(here),
            "best_tiles": _bytes(answer.at_numbers.best[name]),
            "these_tiles": _bytes(answer.at_numbers.usual[name]),
        },
    }


def _lead(answer: Bounds, lead: Lead) -> Json:
    return {
        "monomial": str(lead.monomial),
        "regime": _where(answer, lead.region),
        "constant": None if lead.constant is None else str(lead.constant),
        "published_constant": None if lead.published is None else str(lead.published),
        "kernel": lead.kernel.name,
        "dual": {row: str(w) for row, w in lead.weights.items()},
        "primal": [
            {"regime": _where(answer, region), "tiles": {str(t): str(e) for t, e in tiles.items()}}
            for region, tiles in lead.tilings
        ],
    }


def _dominated(found: Dominated) -> Json:
    return {
        "monomial": str(found.monomial),
        "by": {str(m): str(w) for m, w in found.by.items()},
        "because": [{"small": str(s), "big": str(b), "power": str(p)} for (s, b), p in found.because],
    }


def _tiles(lead: Lead) -> dict[str, str]:
    return {str(t): str(e) for t, e in lead.tilings[0][1].items()} if lead.tilings else {}


def _bytes(made: Account | None) -> Json | None:
    """SM-side bytes at certain tiles, a real count; ``None`` while a number is missing."""
    amount = None if made is None else made.whole(made.sm.total.amount)
    if made is None or amount is None:
        return None
    return {"tiles": {n: int(made.values[n]) for n in ("B_r", "B_c", "B_d") if n in made.values}, "sm_bytes": amount}


def _where(answer: Bounds, region: Cone) -> str:
    return _conditions(answer.parameters.conditions(region))


def _conditions(conditions: Iterable[Condition]) -> str:
    return chain(conditions, str)


def _plain(number: Any) -> int | str:
    return int(number) if number.denominator == 1 else str(sp.Rational(number))
