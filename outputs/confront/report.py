"""A confrontation as text and as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from derive.errors import repeated
from outputs.confront.bandwidth import bandwidths, peak
from outputs.confront.readings import CLOSE
from outputs.confront.replays import mixed_replays
from outputs.layout import Section, Table
from outputs.quantities import decimal, seconds, significant, size

if TYPE_CHECKING:
    from outputs.confront.profile_csv import Profile
    from outputs.confront.readings import Confrontation


def report(found: tuple[Confrontation, ...]) -> list[Section]:
    """Counter by counter, then the readings, schedule by schedule."""
    profile = found[0].profile
    kernels = ", ".join(map(repeated, profile.names[:4])) + (", ..." if len(profile.names) > 4 else "")
    launches = f", mean of {profile.launches} launches" if profile.launches > 1 else ""
    sections = [Section("", [f"measured: {kernels}{launches}", *_spread(profile)])]
    for one in found:
        table = Table(("counter", "measured", "engine", "ratio", "residual", "what explains the gap"))
        for line in one.lines:
            ratio = "" if line.ratio is None else significant(line.ratio)
            sign = "-" if line.residual < 0 else "+"
            residual = sign + _shown(line.counter, abs(line.residual))
            table.add(
                line.counter,
                _shown(line.counter, line.measured),
                _shown(line.counter, line.expected),
                ratio,
                residual,
                line.assumption,
            )
        warning = mixed_replays(one)
        sections.append(Section(f"{one.account.name}", table, [warning] if warning else []))
        readings = Table(("reading", "DRAM read", "DRAM written"))
        for name, (read, written) in one.readings.items():
            readings.add(name, size(read), size(written))
        sections.append(Section(f"{one.account.name}: readings of the cache", readings, [_fits(one)]))
        sections += _rates(one)
    return sections


def _fits(one: Confrontation) -> str:
    """Which reading fits, or why none is named."""
    if one.fits:
        return f"fits: {one.fits}"
    if not {"dram read", "dram"} & one.profile.counters.keys():
        return (
            "DRAM reads were not measured: export dram__bytes_read.sum (ncu) or FETCH_SIZE (rocprof) to see which fits"
        )
    return f"no reading lies within {significant(100 * CLOSE)} % of what was read"


def _spread(profile: Profile) -> list[str]:
    """Launches of one kernel that were averaged although they differ."""
    return [
        f"launches of {repeated(kernel)} differ in {counter}, from {_shown(counter, least)} to {_shown(counter, most)}: their "
        "mean is compared; leave out those of other sizes, and the first ones"
        for kernel, counter, least, most in profile.spread[:3]
    ]


def _rates(one: Confrontation) -> list[Section]:
    """GB/s as a benchmark, the counters and the model would state them."""
    limit = peak(one.account)
    found = bandwidths(one.account, one.profile)
    table = Table(("", "bytes", "time", "rate", "of the DRAM peak", "how to read it"))
    for b in found:
        share = "" if limit is None else f"{significant(100 * b.rate / limit)} %"
        table.add(b.what, size(b.bytes), seconds(b.seconds), decimal(b.rate, "B/s"), share, b.says)
    return [Section(f"{one.account.name}: bandwidth", table)] if found else []


def _shown(counter: str, amount: Fraction) -> str:
    if counter == "seconds":
        return seconds(amount) if amount else "0"
    return f"{significant(100 * amount)} %" if counter == "hit rate" else size(amount)


def as_json(found: tuple[Confrontation, ...], variant: str) -> dict[str, Any]:
    """The object that ``derive confront --json`` prints: bytes, seconds and shares as numbers."""
    profile = found[0].profile
    return {
        "variant": variant,
        "kernels": list(profile.names),
        "launches": profile.launches,
        "schedules": {
            one.account.name: {
                "counters": {
                    line.counter: {
                        "measured": float(line.measured),
                        "engine": float(line.expected),
                        "ratio": line.ratio,
                        "residual": float(line.residual),
                        "explanation": line.assumption,
                    }
                    for line in one.lines
                },
                "readings": {n: {"read": float(r), "write": float(w)} for n, (r, w) in one.readings.items()},
                "fits": one.fits,
                "bandwidth": {
                    b.what.partition(":")[0]: {"bytes": float(b.bytes), "rate": float(b.rate), "explanation": b.says}
                    for b in bandwidths(one.account, one.profile)
                },
                "warning": "; ".join(filter(None, (*_spread(profile), mixed_replays(one)))),
            }
            for one in found
        },
    }
