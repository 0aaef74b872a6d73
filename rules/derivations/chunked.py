"""A recurrence by token, cut into chunks first: then one CTA a sequence and head runs chunk after chunk, its state on chip."""

from dataclasses import replace

import sympy as sp

from derive.symbols import C_t, N_q
from rules.algebra import chunk_recurrence
from rules.derivations import chunkwise

PLAN = replace(
    chunkwise.PLAN,
    name="chunked",
    says="a recurrence by token, cut into chunks of C_t: a CTA for each head runs chunk after chunk with the state on chip",
    algebra=(chunk_recurrence.RULE,),
    tiles={C_t: sp.Integer(64)},
    divides=((C_t, N_q),),
)
