"""Keep the state of a recurrence in memory, as one launch a step does.

    for t: J = f(H), H kept   =   for t: H read, J = f(H), J written

Precondition  the kernel runs its recurrence in a loop, so that there are trips between which the state may leave.
Proof         what is read at a trip is what was written at the one before.
Effect        the state is read and written once a trip: 2 d d_v elements each, whatever the trip does with it.
Reference     decoding with a state, one token a launch: Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule
from rules.schedule.examples import fused, loop, recurrence
from rules.schedule.steps import along


def shape(schedule: Schedule) -> Iterator[Kernel]:
    """Kernels that run a recurrence and do not keep it in memory yet."""
    for kernel in schedule.kernels:
        if along(schedule, kernel) and not kernel.in_memory:
            yield kernel


def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
    """Mark the kernel."""
    return schedule.replace((kernel,), kernel.with_(in_memory=True))


RULE: Rule[Schedule] = Rule(
    name="state-in-memory",
    claim="the state lives in memory: read before every trip and written after it",
    reference="arXiv:2006.16236, section 3.4",
    shape=shape,
    preconditions=(
        Precondition(
            says="the kernel runs its recurrence in a loop",
            holds=lambda schedule, kernel: bool(schedule.states_of(kernel)),
            counterexample=lambda: fused(recurrence(), loop(recurrence(), "h", grid=True)),
        ),
    ),
    rewrite=rewrite,
    example=lambda: fused(recurrence(), loop(recurrence(), "q")),
)
