"""`make audit`: the site's figures. Exits 1 if one is outside its limit.

Build time from clean, and Lighthouse's scores of the home page, a page of mathematics
and the notebook: of each score the median of a few runs, because what else the machine
does counts too. `make test` holds the rest: weight, axe-core, every line of code.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.site.server import serve

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 12
LIGHTHOUSE = {
    "performance": 90,
    "accessibility": 100,
    "best-practices": 100,
    "seo": 100,
}
RUNS = 3
AUDITED = ("", "softmax/online/", "softmax/numerics/")


def build_seconds() -> float:
    """Seconds of `make site`, which builds from clean."""
    start = time.perf_counter()
    subprocess.run(["make", "site"], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def lighthouse(url: str) -> dict[str, int]:
    """Scores from 0 to 100 per category, on Lighthouse's simulated phone."""
    command = [
        "node",
        "node_modules/lighthouse/cli/index.js",
        url,
        "--quiet",
        "--output=json",
        "--chrome-flags=--headless=new --no-sandbox",
        f"--only-categories={','.join(LIGHTHOUSE)}",
    ]
    chrome = {"CHROME_PATH": shutil.which("chromium") or ""}
    run = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, env=os.environ | chrome
    )
    categories = json.loads(run.stdout)["categories"]
    return {name: round(100 * categories[name]["score"]) for name in LIGHTHOUSE}


def main() -> int:
    failed = False

    def show(what: str, value: str, good: bool) -> None:
        nonlocal failed
        failed |= not good
        print(f"{what:52} {value:>32}  {'ok' if good else 'TOO BAD'}", flush=True)

    seconds = build_seconds()
    show("build from clean", f"{seconds:.1f} s", seconds <= BUILD_SECONDS)
    with serve() as address:
        for path in AUDITED:
            runs = [lighthouse(address + path) for _ in range(RUNS)]
            scores = {
                name: statistics.median(r[name] for r in runs) for name in runs[0]
            }
            good = all(scores[name] >= least for name, least in LIGHTHOUSE.items())
            text = " ".join(str(scores[name]) for name in LIGHTHOUSE)
            show(f"Lighthouse {path or 'home'}", text, good)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
