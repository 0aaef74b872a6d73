"""One decode step on a paged cache: K and V lie in pages of tokens, anywhere in memory, and a table says which page is next.

A token of a sequence is found through its block table: token k at k mod page of the page that entry k div page names. The pages
of a pool are as many as all sequences need; the last of a sequence may be part empty, which takes room and is never read.
"""

from dataclasses import replace

from derive.attention import decode
from derive.attention.topk import POSITION_BYTES
from derive.extremes import up
from derive.symbols import B, N_k, b_kv, n_page

PAGES = up(N_k / n_page)
"""Pages that a sequence of N_k tokens takes."""

VARIANT = replace(
    decode.VARIANT,
    name="paged",
    says="one decode step whose cached keys and values lie in pages of tokens and are found through a block table",
    text=f"""
        K[b,g,k,d] = gather(K_pages[p,y,g,d], T[b,n])
        V[b,g,k,e] = gather(V_pages[p,y,g,e], T[b,n])
        {decode.VARIANT.text}
    """,
    extents={**decode.VARIANT.extents, "p": B * PAGES, "y": n_page, "n": PAGES},
    reference="Kwon et al. 2023, PagedAttention, arXiv:2309.06180, section 4",
    widths={"K_pages": b_kv, "V_pages": b_kv, "T": POSITION_BYTES},
    own_mask="full",
    no_mask="a decode step sees every token of its pages",
    schedules=("naive", "flash2", "split-kv"),
)
