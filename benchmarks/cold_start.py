"""Whole-process times, as a person at a prompt waits for them: median of ten, and the peak of memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

RUNS = 10
PYTHON = sys.executable
MODULE = (PYTHON, "-m", "outputs.cli")
COMMANDS = {
    'python -c "import sympy"': (PYTHON, "-c", "import sympy"),
    "derive --help": (*MODULE, "--help"),
    "derive explain mha N=8192 d=128 --on h100-sxm": (*MODULE, "explain", "mha", "N=8192", "d=128", "--on", "h100-sxm"),
    "derive bound mha": (*MODULE, "bound", "mha"),
    "derive tiles mha N=8192 d=128 --on h100-sxm": (*MODULE, "tiles", "mha", "N=8192", "d=128", "--on", "h100-sxm"),
}


def run(command: tuple[str, ...]) -> tuple[float, float]:
    """Seconds that one run takes, and its peak resident memory in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)  # of this child alone, unlike getrusage(RUSAGE_CHILDREN)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Time every command and print a table; the last column compares with importing SymPy."""
    for command in COMMANDS.values():
        run(command)  # so that bytecode is compiled and files are in memory
    rounds = [{name: run(command) for name, command in COMMANDS.items()} for _ in range(RUNS)]
    medians = {name: statistics.median(r[name][0] for r in rounds) for name in COMMANDS}
    reference = next(iter(medians.values()))
    print(f"{'command':<48}{'median':>8}{'fastest':>9}{'peak memory':>13}{'x import sympy':>16}")
    for name, median in medians.items():
        fastest = min(r[name][0] for r in rounds)
        memory = max(r[name][1] for r in rounds)
        print(f"{name:<48}{median:>6.3f} s{fastest:>7.3f} s{memory:>9.0f} MiB{median / reference:>16.2f}")


if __name__ == "__main__":
    main()
