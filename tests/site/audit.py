"""`make audit`: the site's figures. Exits 1 if one is outside its limit.

Build time from clean, and Lighthouse's scores of the home page, a page of mathematics,
the notebook and the page with the most to lay out: of each score the median of a few
runs, because what else the machine does counts too. `make test` holds the rest: weight,
axe-core, every line of code.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from tests.site.server import ROOT, serve

BUILD_SECONDS = 12
LIGHTHOUSE = {
    "performance": 90,
    "accessibility": 100,
    "best-practices": 100,
    "seo": 100,
}
RUNS = 3
AUDITED = "", "softmax/online/", "softmax/numerics/", "attention/flash-attention-2/"


def lighthouse(url: str) -> dict[str, int]:
    """Scores from 0 to 100 per category, on Lighthouse's simulated phone."""
    command = ["node", "node_modules/lighthouse/cli/index.js", url, "--quiet"]
    command += ["--output=json", "--chrome-flags=--headless=new --no-sandbox"]
    command += [f"--only-categories={','.join(LIGHTHOUSE)}"]
    chrome = {"CHROME_PATH": shutil.which("chromium") or ""}
    run = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, env=os.environ | chrome
    )
    categories = json.loads(run.stdout)["categories"]
    return {name: round(100 * categories[name]["score"]) for name in LIGHTHOUSE}


def main() -> int:
    start = time.perf_counter()
    subprocess.run(["make", "site"], cwd=ROOT, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    found = {"build from clean": (f"{seconds:.1f} s", seconds <= BUILD_SECONDS)}
    with serve() as address:
        for path in AUDITED:
            runs = [lighthouse(address + path) for _ in range(RUNS)]
            median = {n: statistics.median(run[n] for run in runs) for n in LIGHTHOUSE}
            good = all(median[name] >= least for name, least in LIGHTHOUSE.items())
            scores = " ".join(str(score) for score in median.values())
            found[f"Lighthouse {path or 'home'}"] = scores, good
    for what, (value, good) in found.items():
        print(f"{what:52} {value:>32}  {'ok' if good else 'TOO BAD'}")
    return 0 if all(good for _, good in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
