"""The one node type: ``output = reduce map(*inputs)`` over an iteration space that a mask may thin out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import sympy as sp

from derive.errors import IllFormedError
from derive.mask import Mask
from derive.paging import Paging, paging


class Map(Enum):
    """What is computed at each point of the iteration space."""

    COPY = "copy"
    """Its input; without a reduction it may also repeat the input along an index that the input lacks."""
    MUL = "mul"
    ADD = "add"
    SUB = "sub"
    DIV = "div"
    """A quotient; 0/0 is 0, so that a query that sees no key gets a zero row (FlashAttention's convention)."""
    VIEW = "view"
    """Its input under other index names, one for one: ``A_k[k] = view(A[q])``; nothing is computed."""
    NEG = "neg"
    EXP = "exp"
    LOG = "log"
    """The natural logarithm; log 0 is -inf."""
    TANH = "tanh"
    SIGMOID = "sigmoid"
    """1 / (1 + exp(-x))."""
    RELU = "relu"
    """max(x, 0)."""
    MAXIMUM = "maximum"
    """The larger of two, point by point."""
    POSITION = "position"
    """The coordinate along the result's only index, or along its only axis where that is cut into parts: generated where it is
    used, read from nowhere."""
    KEEP = "keep"
    """Dropout's mask for the rate p that it reads: 0 with probability p, else 1 / (1 - p). It is a function of a seed and the
    coordinates alone, so it can be made again anywhere."""
    TOP = "top"
    """The positions of the largest along the one index that the result lacks, the largest first, equal ones in order:
    ``T[q,k] = top(X[q,j])`` keeps as many as k says. Every element is compared once; how they are kept in order is opaque.
    Under a mask what a row does not see comes last, in any order: what reads such a position sees it no more."""
    GATHER = "gather"
    """The rows of its first operand that stand at the positions in its second: ``G[q,k,c] = gather(C[j,c], T[q,k])``; or those
    of the pages that these name, as many as k says: ``G[b,k,c] = gather(C[p,y,c], T[b,n])`` (see ``derive.paging``)."""
    INVERSE = "inverse"
    """The inverse of I + L along the last two indices, where L is what stands strictly below the diagonal of its input: nothing
    else of it is read. ``T[q,k] = inverse(A[q,k])`` is lower triangular with ones on its diagonal, made by substitution."""
    SOFTMAX = "softmax"
    """The whole softmax along the last index: opaque to every count until ``split-softmax`` opens it."""
    SOFTMAX_GRADIENT = "softmax_gradient"
    """Of a softmax P and the gradient dP of its result along the last index, the gradient of its scores: dP J with the
    Jacobian J[k, j] = P[k] ([k = j] - P[j]); opaque until ``split-softmax-gradient`` opens it."""

    @property
    def arity(self) -> int:
        """How many tensors it reads."""
        if self is Map.POSITION:
            return 0
        unary = (Map.COPY, Map.VIEW, Map.NEG, Map.EXP, Map.LOG, Map.TANH, Map.SIGMOID, Map.KEEP, Map.SOFTMAX)
        return 1 if self in (*unary, Map.RELU, Map.TOP, Map.INVERSE) else 2

    @property
    def is_generated(self) -> bool:
        """Whether its result depends on where a point stands and on scalars, not on any tensor."""
        return self in (Map.POSITION, Map.KEEP)

    @property
    def is_selection(self) -> bool:
        """Whether positions in a tensor are what it makes, or reads: then it is no operator of one element at a time."""
        return self in (Map.TOP, Map.GATHER)

    @property
    def is_opaque(self) -> bool:
        """Whether a rule must open it before it can be counted."""
        return self in (Map.SOFTMAX, Map.SOFTMAX_GRADIENT)


class Reduce(Enum):
    """How points that share an output element are combined."""

    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Index:
    """A loop index and its symbolic extent, e.g. ``q`` in ``0 <= q < N_q``.

    Attributes:
        name: its name.
        extent: how many values it takes.
        part_of: the index whose range it cuts into equal parts: ``s`` with part_of ``k`` says which part, and ``k`` then
            runs inside one. A tensor that has both side by side, ``K[s, k, d]``, lies in memory as ``K[k, d]`` did.
    """

    name: str
    extent: sp.Expr
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor as one Einsum accesses it: ``S[h, q, k]``.

    Attributes:
        name: its name.
        indices: its indices, slowest first.
        width: bytes an element, a symbol such as ``b`` or ``b_s``.
    """

    name: str
    indices: tuple[Index, ...]
    width: sp.Expr

    @property
    def size(self) -> sp.Expr:
        """How many elements it has."""
        return sp.Mul(*(i.extent for i in self.indices))

    @property
    def axes(self) -> tuple[tuple[Index, ...], ...]:
        """Its axes before any was cut: an index that stands right behind its parts makes one axis with them."""
        found: list[tuple[Index, ...]] = []
        for index in self.indices:
            if found and found[-1][-1].part_of == index.name:
                found[-1] = (*found[-1], index)
            else:
                found.append((index,))
        return tuple(found)

    def along_axes(self, places: Mapping[str, Any], extents: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        """Where *places* of its indices stand along each axis: key k of part s at s times the keys of a part, plus k."""
        found = []
        for first, *rest in self.axes:
            place = places[first.name]
            for i in rest:
                place = place * (i.extent if extents is None else extents[i.name]) + places[i.name]
            found.append(place)
        return tuple(found)

    @property
    def whole(self) -> Tensor:
        """The tensor as it was before any axis was cut: ``K[k, d]`` of ``K[s, k, d]``, the same elements in the same places."""
        if all(len(axis) == 1 for axis in self.axes):
            return self
        extents = (sp.Mul(*(i.extent for i in axis)) for axis in self.axes)
        uncut = (a[0] if len(a) == 1 else Index(a[-1].name, n) for a, n in zip(self.axes, extents, strict=True))
        return replace(self, indices=tuple(uncut))

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(i.name for i in self.indices)}]" if self.indices else self.name


@dataclass(frozen=True, slots=True)
class Einsum:
    """One operation; hashable, compared by value.

    Attributes:
        output: what it defines.
        inputs: what it reads.
        map: the operator at each point.
        reduce: how points with the same output element are combined.
        domain: the points it runs over, where not all of them.
        rescale: for a sum of ``exp(x - m)`` terms, the maximum ``m``: whenever the running maximum rises, the partial
            sum is multiplied by ``exp(m_old - m_new)``, so it never has to wait for the final ``m``.
        previous: for a copy, the index along which it stands one step behind: ``H[n] = J[n - 1]`` and ``H[0] = 0``. What
            it reads may be defined after it, in terms of it: that is a recurrence, and H its state before step n.

    Raises:
        IllFormedError: an output index is bound neither by an input nor by the domain, the arity is wrong, an index is
            reduced with no operator, only a sum could be rescaled, the mask speaks of an index that it does not run over, a
            view changes extents, what stands one step behind is no copy along an index of its own, a selection does not
            put one index in the place of one, what is inverted is no square, or a softmax has nothing to run along.
    """

    output: Tensor
    inputs: tuple[Tensor, ...]
    map: Map
    reduce: Reduce | None = None
    domain: Mask | None = None
    rescale: str | None = None
    previous: str | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) != self.map.arity:
            raise IllFormedError(f"{self}: {self.map.value} reads {self.map.arity} tensors, not {len(self.inputs)}")
        if self.map is Map.VIEW:
            self._check_view()
        if self.previous is not None:
            self._check_previous()
        if self.map.is_selection:
            self._check_selection()
        if self.map is Map.INVERSE:
            self._check_inverse()
        if self.map is Map.TOP:
            return
        bound = {i for t in self.inputs for i in t.indices}
        over = () if self.domain is None else self.domain.axes
        free = self.map.is_generated or (self.map in (Map.COPY, Map.VIEW) and self.reduce is None) or self.paging
        if self.map.is_generated and bound:
            raise IllFormedError(f"{self}: {self.map.value} reads scalars only; it has no use for a tensor")
        if self.map is Map.POSITION and len(self.output.axes) != 1:
            raise IllFormedError(f"{self}: a position is along one index, and {self.output} has another number of them")
        for index in self.output.indices:
            if index not in bound and index.name not in over and not free:
                raise IllFormedError(
                    f"{self}: index {index.name} of the output is bound by no input; read it somewhere"
                )
        if self.reduced and self.reduce is None:
            missing = ", ".join(i.name for i in self.reduced)
            says = f"index {missing} is missing from the output, so it is reduced"
            raise IllFormedError(f"{self}: {says}; name the operator, e.g. sum[{missing}]")
        if self.map.is_opaque and (self.reduce is not None or not self.output.indices):
            raise IllFormedError(f"{self}: {self.map.value} runs along its result's last index, and sums nothing up")
        if self.reduce is not None and not self.reduced:
            raise IllFormedError(f"{self}: {self.reduce.value} has no index to reduce; drop it")
        if self.domain is not None and not set(self.domain.axes) <= {i.name for i in self.space}:
            raise IllFormedError(
                f"{self}: its mask pairs {self.domain.row} with {self.domain.column}, and it does not run over both"
            )
        if self.rescale is not None and self.reduce is not Reduce.SUM:
            raise IllFormedError(f"{self}: only a sum can be rescaled by a running maximum")

    def _check_view(self) -> None:
        (read,) = self.inputs
        plain = self.reduce is None and self.domain is None
        if not plain or [i.extent for i in read.indices] != [i.extent for i in self.output.indices]:
            raise IllFormedError(f"{self}: a view renames indices one for one, each to one of the same extent")

    def _check_previous(self) -> None:
        (read, *others) = self.inputs
        plain = self.map is Map.COPY and self.reduce is None and self.domain is None and not others
        if not plain or read.indices != self.output.indices or read.name == self.output.name:
            raise IllFormedError(
                f"{self}: what stands one step behind is a plain copy of another tensor, index for index"
            )
        if self.previous not in {i.name for i in read.indices}:
            raise IllFormedError(f"{self}: {read} has no index {self.previous} to stand one step behind along")

    def _check_inverse(self) -> None:
        (read,) = self.inputs
        plain = self.reduce is None and self.domain is None and read.indices == self.output.indices
        if not plain or len(read.indices) < 2 or len({i.extent for i in read.indices[-2:]}) != 1:
            raise IllFormedError(
                f"{self}: a square is inverted along its last two indices, index for index and without a mask, as in "
                "T[q,k] = inverse(A[q,k])"
            )

    def _check_selection(self) -> None:
        kept = set(self.output.indices)
        plain = self.reduce is None and self.previous is None and self.rescale is None
        if self.map is Map.TOP:
            made = kept - set(self.inputs[0].indices)
            if not plain or len(made) != 1 or len(self.reduced) != 1:
                raise IllFormedError(
                    f"{self}: the largest along one index are kept under another one, as in T[q,k] = top(X[q,j])"
                )
            if self.domain is not None and not {*self.domain.axes} <= {i.name for i in self.space}:
                raise IllFormedError(
                    f"{self}: its mask says which of what it looks through a row sees, so it pairs two of "
                    f"{', '.join(i.name for i in self.space)}; got {', '.join(self.domain.axes)}"
                )
            return
        read, positions = (set(t.indices) for t in self.inputs)
        if not plain or not (self.paging or (len(read - kept) == 1 and kept == (read & kept) | positions)):
            raise IllFormedError(
                f"{self}: positions stand in the place of one index of what is gathered, as in "
                "G[q,k,c] = gather(C[j,c], T[q,k]), or name as many pages as its rows take"
            )

    @property
    def selected(self) -> Index | None:
        """For a selection, the index that its positions are along."""
        if not self.map.is_selection:
            return None
        return next(i for i in self.inputs[0].indices if i not in self.output.indices)

    @property
    def paging(self) -> Paging[Index] | None:
        """For a gather of rows that lie in pages, how they are found; ``None`` for any other Einsum."""
        return paging(*(t.indices for t in (self.output, *self.inputs))) if self.map is Map.GATHER else None

    @property
    def inverted(self) -> tuple[Index, ...]:
        """For an inverse, the rows and the columns of the square: no part of them can be had without the whole."""
        return self.output.indices[-2:] if self.map is Map.INVERSE else ()

    @property
    def substitutions(self) -> sp.Expr:
        """For an inverse of size C, its multiply-adds, i - j for the element (i, j) below the diagonal: (C^3 - C)/6; else 1.

        ``T[i,j] = -(A[i,j] T[j,j] + ... + A[i,i-1] T[i-1,j])``, nothing on the diagonal or above it.
        """
        if not self.inverted:
            return sp.Integer(1)
        size = self.inverted[0].extent
        return size * (size**2 - 1) / 6

    @property
    def renamed(self) -> dict[str, str]:
        """For a view, what each index of its input that changes its name is called in its result."""
        if self.map is not Map.VIEW:
            return {}
        pairs = zip(self.inputs[0].indices, self.output.indices, strict=True)
        return {old.name: new.name for old, new in pairs if old.name != new.name}

    @property
    def space(self) -> tuple[Index, ...]:
        """The iteration space: the output's indices, then the reduced ones; of a top, what it looks through."""
        return self.inputs[0].indices if self.map is Map.TOP else self.output.indices + self.reduced

    @property
    def reduced(self) -> tuple[Index, ...]:
        """Indices of the iteration space that the output does not carry, in order of first use."""
        if self.map in (Map.VIEW, Map.GATHER):
            return ()
        seen = dict.fromkeys(i for t in self.inputs for i in t.indices if i not in self.output.indices)
        return tuple(seen)

    @property
    def points(self) -> sp.Expr:
        """How many times ``map`` is applied: the size of the iteration space, the mask taken into account.

        Of an inverse, the multiply-adds of its substitution.
        """
        if self.domain is None:
            return self.substitutions * sp.Mul(*(i.extent for i in self.space if i not in self.inverted))
        rest = [i.extent for i in self.space if i.name not in self.domain.axes]
        return sp.Mul(self.domain.pairs, *rest)

    def __str__(self) -> str:
        expression = f"{self.map.value}({', '.join(map(str, self.inputs))})"
        if self.map is Map.COPY and self.inputs:
            expression = str(self.inputs[0])
        if self.previous is not None:
            expression = f"previous_{{{self.previous}}} {expression}"
        if self.reduce is not None:
            reduced = ", ".join(i.name for i in self.reduced)
            expression = f"{self.reduce.value}_{{{reduced}}} {expression}"
        rescaled = f"  rescaled by running {self.rescale}" if self.rescale else ""
        return f"{self.output} = {expression}{rescaled}"
