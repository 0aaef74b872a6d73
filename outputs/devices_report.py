"""Schemes for several devices as text and as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from derive.symbols import MEANINGS, R
from outputs.layout import Section, Table
from outputs.notation import text, tidy
from outputs.quantities import decimal, grouped, seconds, significant, size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import sympy as sp

    from derive.exact import Number
    from outputs.devices import Division

NOTES = (
    "link bytes are one way: what a device receives of inputs and sends of results; each device of a group does alike",
    "memory: inputs and results on a device, two buffers for a shard that streams; row statistics and scores stay on chip",
    "busiest / mean: useful pairs of the busiest device; in lock-step: the busiest at each step, added up, as devices wait",
    "hidden from: queries a device from which a ring step works, at peak matrix FLOP/s, longer than the next shard travels",
)


def report(divisions: tuple[Division, ...], refused: Mapping[str, str]) -> list[Section]:
    """The schemes side by side, then each with its closed forms."""
    sections = [_question(divisions[0]), _side_by_side(divisions, refused)]
    sections += [_forms(division) for division in divisions]
    return sections


def _question(division: Division) -> Section:
    request = division.request
    numbers = {name: number for name, number in request.numbers.items() if name != R.name}
    if division.alike and {"N_q", "N_k"} <= numbers.keys():
        length = f"N = {_plain_number(numbers.pop('N_q'))}  "
        del numbers["N_k"]
    else:
        length = ""
    sizes = length + "  ".join(f"{MEANINGS[name].key} = {_plain_number(n)}" for name, n in numbers.items())
    devices = request.numbers.get(R.name)
    machine = f" of {division.machine.id}" if division.machine else ""
    lines = [
        f"{request.variant.name} on {'R' if devices is None else devices} devices{machine}: {sizes}  "
        f"{request.operand.name}  mask {request.pattern}"
    ]
    if division.bandwidth is not None:
        lines.append(f"links: {decimal(division.bandwidth, 'B/s')} a device, one way")
    elif division.machine is not None and "link_bandwidth" in division.machine.absent:
        why = division.machine.absent["link_bandwidth"].reason
        lines.append(f"links: {division.machine.id} states none ({why}); give one with --link, e.g. --link 50GB/s")
    return Section("", lines)


def _side_by_side(divisions: tuple[Division, ...], refused: Mapping[str, str]) -> Section:
    heads = ("scheme", "steps", "link a device", "memory a device", "busiest / mean", "in lock-step", "hidden from")
    table = Table((*heads, "work", "link", "not hidden"))
    for d in divisions:
        times = {} if d.times is None else {name: seconds(t) if t else "0" for name, t in d.times.items()}
        table.add(
            d.scheme.name,
            _cell(d, d.device.steps, grouped),
            _cell(d, d.link, size),
            _cell(d, d.device.memory, size),
            _ratio(d, d.busiest_over_mean, "busiest"),
            _ratio(d, d.lock_step_over_mean, "lock_step"),
            "" if d.block is None else _cell(d, d.block, _tokens),
            *(times.get(name, "") for name in ("work", "link", "exposed")),
        )
    beside = divisions[0].device.beside_pairs
    more = [f"work is that of pairs: the products {', '.join(beside)} are left out"] if beside else []
    return Section("schemes", table, [*NOTES, *more, *(f"{name}: {why}" for name, why in refused.items())])


def _cell(division: Division, amount: sp.Expr, printed: Callable[[Any], str]) -> str:
    number = division.number(amount)
    return text(tidy(division.shown(amount))) if number is None else printed(_whole(number))


def _tokens(number: Number) -> str:
    return f"{grouped(number)} tokens"


def _ratio(division: Division, number: Number | None, which: str) -> str:
    if number is not None:
        return significant(number)
    balance = division.balance
    amount = None if balance is None else getattr(balance, which)
    if balance is None or amount is None:
        return ""
    ratio = balance.ratio(amount)
    return "" if ratio is None else text(tidy(division.shown(ratio)))


def _forms(division: Division) -> Section:
    device = division.device
    lines = [f"{division.scheme.says} [{division.scheme.reference}]"]
    lines.append(_line(division, "link bytes a device", division.link, _bytes))
    if len(division.link_by_tensor) > 1:
        lines += [_line(division, f"  {name}", amount, _bytes) for name, amount in division.link_by_tensor.items()]
    if division.step_link is not None:
        lines.append(_line(division, "bytes a step", division.step_link, _bytes))
    if division.step_flop is not None:
        lines.append(_line(division, "matrix FLOP of pairs a step, busiest device", division.step_flop, _flop))
    lines.append(_line(division, "memory a device", device.memory, _bytes))
    for name, count in division.heads.items():
        lines.append(_line(division, f"  heads of index {name}", count, grouped))
    for name, count in division.copies.items():
        lines.append(_line(division, f"  devices that hold an element of {name}", count, grouped))
    lines += _balance_lines(division)
    if division.block is not None:
        lines.append(_line(division, "work hides the transfer from, queries a device", division.block, _tokens))
    return Section(division.scheme.name, lines)


def _balance_lines(division: Division) -> list[str]:
    balance = division.balance
    if balance is None:
        return ["busiest / mean = 1: every device has all pairs of its heads"]
    ratio, limit = balance.ratio(balance.busiest), balance.limit(balance.busiest)
    if ratio is None:
        asked = division.busiest_over_mean
        return [] if asked is None else [f"busiest / mean = {significant(asked)}, by asking each device"]
    found = "" if ratio == 1 or limit is None else f", {text(limit)} for long sequences"
    exact = division.number(ratio)
    return [f"busiest / mean = {text(ratio)}" + ("" if exact in (None, ratio) else f" = {significant(exact)}") + found]


def _line(division: Division, what: str, amount: sp.Expr, printed: Callable[[Any], str]) -> str:
    number = division.number(amount)
    form = text(tidy(division.shown(amount)))
    plain = number is None or form == str(number)
    return f"{what} = {form}" + ("" if plain or number is None else f" = {printed(_whole(number))}")


def _bytes(number: Number) -> str:
    return f"{size(number)} ({grouped(number)} B)" if number >= 1024 else size(number)


def _flop(number: Number) -> str:
    return decimal(number, "FLOP")


def _whole(number: Number) -> int:
    """A count rounded up: part of a byte or of a token is a whole one."""
    return -(-Fraction(number).numerator // Fraction(number).denominator)


def _plain_number(number: Number) -> str:
    return grouped(number) if isinstance(number, int) else str(number)


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(divisions: tuple[Division, ...], refused: Mapping[str, str]) -> dict[str, Any]:
    """The object that ``derive devices --json`` prints; see ``schema/devices.json``."""
    first = divisions[0]
    return {
        "variant": first.request.variant.name,
        "machine": first.machine.id if first.machine else None,
        "mask": first.request.mask,
        "dtype": {group: t.name for group, t in first.request.types.items()},
        "parameters": {n: x if isinstance(x, int) else str(x) for n, x in first.request.numbers.items()},
        "link_bandwidth": None if first.bandwidth is None else float(first.bandwidth),
        "schemes": {d.scheme.name: _scheme(d) for d in divisions},
        "refused": dict(refused),
    }


def _scheme(division: Division) -> dict[str, Any]:
    device = division.device
    streams = division.step_link is not None
    return {
        "reference": division.scheme.reference,
        "steps": _amount(division, device.steps),
        "link": {
            **(_amount(division, division.link) or {}),
            "tensors": {name: _amount(division, amount) for name, amount in division.link_by_tensor.items()},
            "a_step": _amount(division, division.step_link) if streams else None,
        },
        "flops_a_step": _amount(division, division.step_flop),
        "memory": _amount(division, device.memory),
        "heads": {name: _amount(division, count) for name, count in division.heads.items()},
        "copies": {name: _amount(division, count) for name, count in division.copies.items()},
        "balance": _balance(division),
        "block": _amount(division, division.block),
        "time": None if division.times is None else {name: float(t) for name, t in division.times.items()},
    }


def _balance(division: Division) -> dict[str, Any]:
    balance = division.balance
    found = {}
    for key, which, number in (
        ("busiest", "busiest", division.busiest_over_mean),
        ("lock_step", "lock_step", division.lock_step_over_mean),
    ):
        amount = None if balance is None else getattr(balance, which)
        ratio = None if balance is None else balance.ratio(amount)
        limit = None if balance is None else balance.limit(amount)
        found[key] = {
            "symbolic": "1" if balance is None else (None if ratio is None else str(division.shown(ratio))),
            "limit": "1" if balance is None else (None if limit is None else str(limit)),
            "value": None if number is None else str(number),
        }
    return found


def _amount(division: Division, amount: sp.Expr | None) -> dict[str, Any] | None:
    if amount is None:
        return None
    number = division.number(amount)
    return {"symbolic": str(division.shown(amount)), "value": None if number is None else _whole(number)}
