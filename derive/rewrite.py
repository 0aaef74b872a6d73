"""What a rule is, how it is applied, and the record that it leaves: rules are values, derivations are tuples of them.

An algebra rule rewrites a Graph and keeps every value; a schedule rule rewrites a Schedule and keeps every point. Both have
one form: where it might apply, the clauses it needs (each with a counterexample that breaks it alone), and the rewriting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import sympy as sp

from derive.errors import PreconditionError
from derive.graph import Graph
from derive.schedule import Schedule, lift

Subject = TypeVar("Subject", Graph, Schedule)


@dataclass(frozen=True, slots=True)
class Precondition(Generic[Subject]):
    """A clause a rule needs.

    Attributes:
        says: the clause in words.
        holds: whether it is true of a match.
        counterexample: makes a subject of the rule's shape that breaks this clause and no other.
    """

    says: str
    holds: Callable[[Subject, Any], bool]
    counterexample: Callable[[], Subject]


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject]):
    """A rewrite with its proof obligations.

    Attributes:
        name: what a person calls it.
        claim: what it does, one sentence without a full stop.
        reference: where it is proved.
        shape: matches by structure alone.
        preconditions: clauses that make a match legal.
        rewrite: the new subject; no search and no checks.
        example: makes a subject that it applies to.
        condition: where the rewritten subject does what the claim says, when that depends on numbers.
        options: the parameters it was made with, printed beside its name.
    """

    name: str
    claim: str
    reference: str
    shape: Callable[[Subject], Iterator[Any]]
    preconditions: tuple[Precondition[Subject], ...]
    rewrite: Callable[[Subject, Any], Subject]
    example: Callable[[], Subject]
    condition: Callable[[Subject], sp.Basic] = field(default=lambda _: sp.true)
    options: str = ""

    def matches(self, subject: Subject) -> Iterator[Any]:
        """Matches that meet every precondition."""
        return (m for m in self.shape(subject) if all(p.holds(subject, m) for p in self.preconditions))

    def __str__(self) -> str:
        return f"{self.name}({self.options})" if self.options else self.name


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a rule: what stood before, what stands after, and why it was legal."""

    rule: Rule[Any]
    before: Graph | Schedule
    after: Graph | Schedule

    @property
    def reasons(self) -> tuple[str, ...]:
        """The clauses that were checked and hold."""
        return tuple(p.says for p in self.rule.preconditions)

    @property
    def condition(self) -> sp.Basic:
        """Where the claim holds, when it depends on numbers."""
        return self.rule.condition(self.after)


def apply_once(rule: Rule[Subject], subject: Subject) -> Step:
    """Rewrite the first match of *rule* that is legal.

    Raises:
        PreconditionError: nothing has its shape, or the first match breaks a clause; the message says which.
    """
    found = list(rule.shape(subject))
    for match in found:
        if all(p.holds(subject, match) for p in rule.preconditions):
            return Step(rule, subject, rule.rewrite(subject, match))
    if not found:
        raise PreconditionError(f"{rule} does not apply: nothing here has its shape ({rule.claim})")
    broken = next(p for p in rule.preconditions if not p.holds(subject, found[0]))
    raise PreconditionError(f"{rule} does not apply: it needs that {broken.says}")


@dataclass(frozen=True, slots=True)
class Derivation:
    """A graph, and the steps that made a schedule of it.

    Attributes:
        name: the schedule's name.
        start: the graph as the variant wrote it.
        steps: algebra steps, then schedule steps.
        schedule: what came out.
    """

    name: str
    start: Graph
    steps: tuple[Step, ...]
    schedule: Schedule

    def __str__(self) -> str:
        return "\n".join((f"{self.name}:", str(self.start), *(f"by {s.rule}" for s in self.steps), str(self.schedule)))


@dataclass(frozen=True, slots=True)
class WherePossible(Generic[Subject]):
    """A rule that a derivation takes wherever something has its shape, perhaps nowhere: skipping tiles needs a mask.

    Attributes:
        rule: the rule.
        if_legal: whether a match that breaks a clause is passed over, where the derivation means the same without it;
            otherwise it is refused.
    """

    rule: Rule[Subject]
    if_legal: bool = False


def deduce(
    name: str,
    graph: Graph,
    algebra: tuple[Rule[Graph] | WherePossible[Graph], ...],
    schedule: tuple[Rule[Schedule] | WherePossible[Schedule], ...],
) -> Derivation:
    """Apply *algebra* rules to *graph*, lift it op by op, then apply *schedule* rules, in order, each once.

    Raises:
        PreconditionError: a rule does not apply where it stands.
    """
    steps: list[Step] = []
    rewritten = _take(algebra, graph, steps)
    cut = _take(schedule, lift(rewritten), steps)
    return Derivation(name, graph, tuple(steps), cut)


def _take(rules: tuple[Rule[Subject] | WherePossible[Subject], ...], subject: Subject, steps: list[Step]) -> Subject:
    """The subject after all *rules*; each application is appended to *steps*."""
    for taken in rules:
        if not isinstance(taken, WherePossible):
            steps.append(apply_once(taken, subject))
            subject = steps[-1].after  # type: ignore[assignment]
            continue
        where = taken.rule.matches if taken.if_legal else taken.rule.shape
        while next(where(subject), None) is not None:
            steps.append(apply_once(taken.rule, subject))
            subject = steps[-1].after  # type: ignore[assignment]
    return subject
