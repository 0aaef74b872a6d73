"""A recurrence by token, cut into chunks first; the state of every chunk is written by one kernel and read by another."""

from dataclasses import replace

from rules.derivations import chunked, chunkwise_materialised

PLAN = replace(
    chunked.PLAN,
    name="chunked-materialised",
    says="a recurrence by token, cut into chunks of C_t: one kernel writes every state, another reads them, all chunks at once",
    reference=chunkwise_materialised.PLAN.reference,
    schedule=chunkwise_materialised.PLAN.schedule,
)
