"""What ``derive laws`` answers: how each count of each schedule grows with each symbol, and where residency makes one jump."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.cost import Moves
from derive.errors import UnboundError
from derive.exact import Number, value
from derive.flops import Pipe
from derive.growth.parameters import exponents_of
from derive.laws import Evidence, Law, Lines, Open, Regime, Roles, laws, looked_for, told_apart
from derive.substitution import free, put
from derive.symbols import C_L2, N, N_k, N_q, n_L2
from outputs.notation import with_one_length
from outputs.spelling import in_reading_order
from rules.derivations import plan

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

MOST_CASES = 4
"""Of a count with more cases, the first and the last are shown: what fits, and what shares nothing."""


@dataclass(frozen=True)
class Count:
    """One amount that laws speak of.

    Attributes:
        name: what it counts, e.g. ``SM-side: K, V``.
        unit: its unit.
        amount: its closed form in one case.
        where: the conditions of that case.
    """

    name: str
    unit: str
    amount: sp.Expr
    where: tuple[sp.Basic, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A law of one count, or that none was found and what speaks against one."""

    count: Count
    symbol: sp.Symbol
    law: Law | None
    against: Open | None = None


@dataclass(frozen=True)
class Jump:
    """Where re-reads stop hitting the cache, and what HBM sees on both sides.

    Attributes:
        length: the symbol that grows.
        at: the largest length that fits; ``None`` while a symbol is open.
        formula: the same in symbols.
        before, after: bytes at that length, and one further.
    """

    length: str
    formula: sp.Expr
    at: int | None
    before: Number | None
    after: Number | None


@dataclass(frozen=True)
class Growths:
    """The laws of one schedule.

    Attributes:
        answer: the question's answer.
        account: the schedule.
    """

    answer: Explanation
    account: Account

    @cached_property
    def roles(self) -> Roles:
        """What each symbol is in it."""
        divides = (*self.answer.request.variant.divides, *plan(self.account.name).divides)
        schedule = self.account.derivation.schedule
        known = {s for t in schedule.graph.tensors.values() for s in t.size.free_symbols}
        known |= {s for k in schedule.kernels for x in k.loops for s in x.extent.free_symbols}
        limits = [(a, b) for a, b in self.answer.request.variant.at_most if a in known]
        roles = Roles.of(schedule, self.answer.alike, [pair for pair in divides if set(pair) <= known], limits)
        return replace(roles, packed=self.answer.request.pattern.numbers)

    @cached_property
    def _known(self) -> dict[tuple[sp.Expr, sp.Symbol, tuple[sp.Basic, ...]], list[Law] | Open]:
        """Laws found already: two counts may have one closed form."""
        return {}

    @cached_property
    def _lines(self) -> Lines:
        """Numbers at which laws are looked for, the same for all counts."""
        return Lines(frozenset(s for count in self.counts for s in free(count.amount)))

    @cached_property
    def counts(self) -> tuple[Count, ...]:
        """Every count, case by case."""
        return tuple(case for count in self._counts() for case in self._cases(count))

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """What may be scaled, in reading order: sizes of the variant, even where no count depends on them, and tiles."""
        found = {s for count in self.counts for s in free(count.amount)}
        sized = {s.xreplace(self.answer.alike) for s in self.answer.request.variant.symbols}
        opened = {*self.answer.request.numbers, *self.answer.request.open}
        found |= {s for s in sized if s.is_Symbol and s.name in opened}
        fixed = {N, N_q, N_k} if self.is_listed else set()
        return tuple(in_reading_order(found - {C_L2, n_L2} - fixed))

    @property
    def is_listed(self) -> bool:
        """Whether the mask is a list for one length, which nothing can be scaled in."""
        return self.answer.request.pattern.length is not None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """A law, or none, of each count in each symbol."""
        return tuple(f for count in self.counts for s in self.symbols for f in self._of(count, s))

    @cached_property
    def classes(self) -> tuple[Law, ...]:
        """How SM-side elements grow at the best tiles that fit M, one law a leading monomial and symbol."""
        grown = self.account.growth(self.answer.alike)
        found = []
        for lead in () if grown is None else grown.leads:
            where = grown.parameters.conditions(lead.region)  # type: ignore[union-attr]
            regime = Regime(where=tuple(sp.Le(small, big, evaluate=False) for small, big in where))
            exponents = exponents_of(lead.monomial)
            for symbol in in_reading_order(grown.parameters.symbols):  # type: ignore[union-attr]
                power = exponents.get(symbol, Fraction(0))
                found.append(Law(lead.monomial, symbol, (power,), regime, Evidence.PROVED, exact=False))
        return tuple(found)

    @cached_property
    def jump(self) -> Jump | None:
        """Where HBM bytes jump as the length grows; ``None`` where nothing is read twice, or all lengths fit."""
        found = self.answer.thresholds[self.account.name]
        if found is None:
            return None
        formula = put(found.formula, self.answer.shown)
        if found.number is None or found.number < 1:
            return Jump(found.symbol, formula, found.number, None, None)
        sides = [self._dram_at(found.number), self._dram_at(found.number + 1)]
        return Jump(found.symbol, formula, found.number, sides[0], sides[1])

    def here(self, regime: Regime) -> bool | None:
        """Whether the numbers given lie in *regime*; ``None`` while a symbol is open."""
        try:
            return regime.broken(self.values) is None
        except UnboundError:
            return None

    @cached_property
    def values(self) -> dict[str, Number]:
        """The numbers given, one length by its name."""
        return with_one_length(self.account.values, self.answer.tied)

    def _dram_at(self, length: int) -> Number | None:
        """HBM bytes at another length, tiles and all else as they are; splits that do not divide it leave it open."""
        values = {**self.account.values, "N_k": length}
        if self.answer.tied:
            values["N_q"] = length
        if any(length % int(values.get(a.name, 1)) for a, b in plan(self.account.name).divides if b == N_k):
            return None
        try:
            return value(self.account.dram.total.amount, values)
        except UnboundError:
            return None

    def _of(self, count: Count, symbol: sp.Symbol) -> Iterator[Finding]:
        """The laws of *count* in *symbol*, one a case; checked where none is proved."""
        key = count.amount, symbol, count.where
        if key not in self._known:
            self._known[key] = laws(count.amount, symbol, self.roles) or self._looked_for(count, symbol)
        found = self._known[key]
        if isinstance(found, Open):
            yield Finding(count, symbol, None, found)
            return
        for law in found:
            where = () if law.is_independent and not law.regime.where else count.where
            yield Finding(
                count, symbol, replace(law, regime=Regime().also(where=where).also(law.regime.whole, law.regime.where))
            )

    def _looked_for(self, count: Count, symbol: sp.Symbol) -> list[Law] | Open:
        found = looked_for(count.amount, symbol, self.roles, where=count.where, lines=self._lines)
        return found if isinstance(found, Open) else [found]

    def _counts(self) -> Iterator[Count]:
        a, shown = self.account, self.answer.shown
        amounts: list[tuple[str, str, sp.Expr | None]] = [
            ("matmul FLOP, useful", "FLOP", a.useful[Pipe.MMA]),
            ("matmul FLOP, executed", "FLOP", a.executed[Pipe.MMA]),
            ("exponentials, useful", "exp", a.useful[Pipe.SFU]),
            ("compulsory", "B", a.compulsory.total.amount),
            *((f"compulsory: {names}", "B", amount) for names, amount in self._parts(a.compulsory)),
            ("SM-side", "B", a.sm.total.amount),
            *((f"SM-side: {names}", "B", amount) for names, amount in self._parts(a.sm)),
            ("DRAM", "B", a.dram.total.amount),
            ("shared memory a CTA", "B", a.footprint),
            ("HBM at its peak", "B", a.memory_peak),
        ]
        for name, unit, amount in amounts:
            if amount is not None and amount != 0:
                yield Count(name, unit, put(amount, shown))

    def _parts(self, moves: Moves) -> Iterator[tuple[str, sp.Expr]]:
        """What moves of the tensors that carry queries alone, keys alone, or both, where there are several such parts."""
        schedule = self.account.derivation.schedule
        groups: dict[tuple[bool, bool], list[str]] = {}
        for name in moves.by_tensor:
            carried = {i.name for i in schedule.graph.tensors[name].indices}
            groups.setdefault(("q" in carried, "k" in carried), []).append(name)
        if len(groups) > 1:
            for names in groups.values():
                total = sp.Add(*(m.read + m.write for n in names for m in (moves.by_tensor[n],)))
                yield ", ".join(names), total

    def _cases(self, count: Count) -> Iterator[Count]:
        for amount, where in told_apart(count.amount, MOST_CASES):
            yield replace(count, amount=amount, where=where)


def growths(answer: Explanation) -> tuple[Growths, ...]:
    """The laws of each schedule of *answer*."""
    return tuple(Growths(answer, account) for account in answer.accounts)


def with_groups_open(
    words: tuple[str, ...], divides: tuple[tuple[sp.Symbol, sp.Symbol], ...], keys: dict[str, str]
) -> tuple[str, ...]:
    """*words* with the sizes that must divide one another left open, unless something is said of them: h and hk."""
    said = {word.partition("=")[0] for word in words}
    sizes = dict.fromkeys(keys[s.name] for pair in divides for s in pair if s not in (N_q, N_k))
    return (*words, *(f"{key}=?" for key in sizes if key and key not in said))
