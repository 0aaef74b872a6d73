"""A question as a user types it, answered as an account."""

from __future__ import annotations

from typing import Any

from derive.attention import variant
from derive.cost import Moves
from derive.flops import Convention, Pipe
from hardware import load
from outputs.account import Account
from outputs.deduction import Options, account
from outputs.explanation import Explanation
from outputs.request import read_request

MiB = 2**20
KiB = 2**10


def ask(words: str, schedule: str = "flash2", *, on: str | None = "h100-sxm", **options: Any) -> Account:
    """The account of ``derive explain WORDS --schedule SCHEDULE --on ON``; *words* starts with the variant."""
    name, *symbols = words.split()
    return account(read_request(variant(name), symbols), schedule, load(on) if on else None, Options(**options))


def explain(words: str, *schedules: str, on: str | None = "h100-sxm", **options: Any) -> Explanation:
    """The explanation of the same question for several schedules."""
    name, *symbols = words.split()
    return Explanation(read_request(variant(name), symbols), schedules, load(on) if on else None, Options(**options))


def total(found: Account, moves: Moves) -> int:
    """All bytes of *moves*."""
    return int(found.exact(moves.total.amount))


def moved(found: Account, moves: Moves, *tensors: str) -> int:
    """Bytes read and written of some tensors."""
    return int(sum(found.exact(m.read + m.write) for name, m in moves.by_tensor.items() if name in tensors))


def matmul_flop(words: str, schedule: str = "flash2", convention: str = "exact", **options: Any) -> int:
    """Useful matrix FLOP under a convention."""
    found = ask(words, schedule, convention=Convention(convention), **options)
    return int(found.exact(found.useful[Pipe.MMA]))
