"""The example notebook runs from its first cell to its last, and what it shows is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.test_docs import needs

NOTEBOOK = Path(__file__).parents[1] / "docs" / "example.ipynb"


def shown(cell: Any) -> dict[str, str]:
    """What a cell shows, by kind."""
    return {kind: str(words) for output in cell.outputs for kind, words in output.get("data", {}).items()}


def test_the_example_notebook_runs() -> None:
    """In a kernel of its own; graph, derivation and schedule come as HTML and as LaTeX, and it is stored without outputs."""
    needs("nbclient", "nbformat", "ipykernel")
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert 4 <= len(code) <= 8
    assert not any(cell.outputs for cell in code)
    nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parents[1])}}
    ).execute()
    graph, derivation, schedule, formula, numbers, _ = code
    for cell in (graph, derivation, schedule):
        assert "attn-derive" in shown(cell)["text/html"]
        assert r"\begin{array}" in shown(cell)["text/latex"]
    assert "<svg" in shown(graph)["text/html"]
    assert "online-softmax" in shown(derivation)["text/html"]
    assert r"\lceil" in shown(formula)["text/latex"]
    assert "N =   8K: 8 MiB, 260 MiB, 8 MiB" in numbers.outputs[0]["text"]
