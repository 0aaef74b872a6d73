"""The engine's own proof at scale: random configurations by the hundred thousand, closed forms against what counts them.

    python -m tests.soak --seed 0 --configurations 100000
    python -m tests.soak --seed 0 --seconds 3600

Work comes in batches, numbered from 0; a batch is made by the seed and its number alone, so that ``--batch N`` runs it again.
"""
