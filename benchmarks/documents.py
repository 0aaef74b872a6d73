"""How long documents take and how large they get: a paper and a report cold, and what a notebook shows."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from derive.attention import variant
from outputs.notebook import as_html, as_latex
from rules.derivations import plan

RUNS = 5
QUESTION = ("N=8192", "d=128", "--on", "h100-sxm", "--force")
COMMANDS = {
    "derive paper mha -o a.tex": ("paper", "mha", *QUESTION, "-o", "a.tex"),
    "derive report mha -o a.html": ("report", "mha", *QUESTION, "-o", "a.html"),
    "derive report mha-backward -o b.html": ("report", "mha-backward", *QUESTION, "-o", "b.html"),
    "derive plot roofline mha -o a.svg": ("plot", "roofline", "mha", *QUESTION, "-o", "a.svg"),
}


def cold(words: tuple[str, ...], folder: str) -> float:
    """Seconds of one process."""
    start = time.perf_counter()
    subprocess.run((sys.executable, "-m", "outputs.cli", *words), cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print the time and size of each document, and the time of each notebook representation."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in COMMANDS.items():
            seconds = statistics.median(cold(words, folder) for _ in range(RUNS))
            print(f"{name:<40} {seconds:6.2f} s  {(Path(folder) / words[-1]).stat().st_size / 1000:8.1f} kB")
    made = plan("flash2").derive(variant("mha").graph())
    for show in (as_html, as_latex):
        for subject in (made.start, made.schedule, made):
            start = time.perf_counter()
            shown = show(subject)
            milliseconds = 1e3 * (time.perf_counter() - start)
            print(
                f"{show.__name__} of a {type(subject).__name__:<12} {milliseconds:6.1f} ms  {len(shown):7d} characters"
            )


if __name__ == "__main__":
    main()
