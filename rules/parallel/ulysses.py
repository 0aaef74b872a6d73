"""Ulysses: all-to-all turns shards of tokens into shards of heads, and back."""

from rules.scheme import Scheme

SCHEME = Scheme(
    name="ulysses",
    says="four all-to-alls: Q, K, V from shards of tokens to whole sequences of h/R heads, O back",
    reference="Jacobs et al. 2023, arXiv:2309.14509",
    deals="heads",
)
