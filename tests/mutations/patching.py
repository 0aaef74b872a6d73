"""A mutant put into a process that has the library and its tests already: the changed function's code is replaced in place.

Importing SymPy, the catalogue and the tests takes seconds and most mutants fall in tenths of one. What modules made on import
was made by the unchanged code; a mutant of a line that runs then has no function to change, and wants a process of its own.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

Place = tuple[str, int]


def changes(path: Path, before: str, after: str) -> dict[Place, CodeType]:
    """Code of the functions that *after* changes in the file *path*, by name and line; empty where that is none, or not all."""
    old, new = (dict(_functions(compile(text, str(path), "exec", dont_inherit=True))) for text in (before, after))
    if set(old) != set(new):
        return {}
    found = {place: code for place, code in new.items() if code != old[place]}
    top = ("<module>", 0)
    # a function's code is a constant of what holds it, so the module differs too: it must differ in nothing else
    same_here = _outer(old[top]) == _outer(new[top])
    changed_class = any(not _is_function(code) and place != top for place, code in found.items())
    if not same_here or (
        changed_class and any(_outer(old[p]) != _outer(c) for p, c in found.items() if not _is_function(c))
    ):
        return {}
    return {place: code for place, code in found.items() if _is_function(code)}


def put(path: Path, changed: dict[Place, CodeType]) -> bool:
    """Give every function of *path* that is alive its changed code, and forget what was cached; whether one was found."""
    done = False
    gc.unfreeze()  # what is frozen is not among the objects that the collector knows of
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(path):
            code = changed.get(_place(thing.__code__))
            if code is not None and code.co_freevars == thing.__code__.co_freevars:
                thing.__code__ = code
                done = True
        elif isinstance(thing, functools._lru_cache_wrapper):
            thing.cache_clear()
    return done


def _functions(code: CodeType) -> Iterator[tuple[Place, CodeType]]:
    yield _place(code), code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions(constant)


def _place(code: CodeType) -> Place:
    return code.co_qualname, 0 if code.co_name == "<module>" else code.co_firstlineno


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & 0x1)  # CO_OPTIMIZED: bodies of modules and classes are not


def _outer(code: CodeType) -> tuple[object, ...]:
    """*code* without the functions that it makes."""
    plain = tuple(type(c) if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts)
    return code.co_code, plain, code.co_names
