"""All-gather: each device keeps its queries and fetches all keys and values first."""

from rules.scheme import Scheme

SCHEME = Scheme(
    name="all-gather",
    says="each device keeps N/R queries, a contiguous shard, and gathers all K and V before it works; dealt in zig-zag, as "
    "Llama 3 does, it is as even as that ring",
    reference="Llama Team 2024, arXiv:2407.21783, section 3.3.2",
    deals="tokens",
)
