"""How long `derive check` needs for a thousand random configurations, and for each."""

from __future__ import annotations

import subprocess
import sys
import time

SAMPLES = 1000
COMMAND = (sys.executable, "-m", "outputs.cli", "check", "mha", "--samples", str(SAMPLES))


def main() -> None:
    """Run the check once and print its time."""
    start = time.perf_counter()
    code = subprocess.run(COMMAND, stdout=subprocess.DEVNULL, check=False).returncode
    seconds = time.perf_counter() - start
    if code:
        raise SystemExit(f"derive check ended with {code}")
    print(f"derive check mha --samples {SAMPLES}: {seconds:.1f} s, {1000 * seconds / SAMPLES:.1f} ms a configuration")


if __name__ == "__main__":
    main()
