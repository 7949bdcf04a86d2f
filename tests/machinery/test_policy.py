"""What stands beside the pages: a policy for each, and what is made again."""

import base64
import hashlib
import os
from types import SimpleNamespace
from typing import Any

import pytest

from verified_docs.pages import hooks
from verified_docs.pages.policy import RULES, apply

PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><script>theme()</script></head><body>
<script src="theme.js"></script><article><script>author()</script></article>
<script>theme()</script><script type="application/json">{}</script></body></html>"""


def test_nothing_comes_from_elsewhere_and_no_script_of_a_page_runs():
    rules = {name: values for name, *values in map(str.split, RULES.split(";"))}
    assert {"default-src", "base-uri", "form-action"} <= rules.keys()
    assert rules["script-src"] == ["'self'"]
    assert rules.pop("style-src") == ["'self'", "'unsafe-inline'"]  # KaTeX's are.
    harmless = {"'self'", "'none'", "data:"}
    assert {v for values in rules.values() for v in values} <= harmless


def test_scripts_of_the_theme_may_run_and_those_of_an_author_may_not(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part/index.html").write_text(PAGE)
    apply(tmp_path)
    page = (tmp_path / "part/index.html").read_text()
    policy, _, rest = page.partition('content="')[2].partition('">')
    assert page.index("Content-Security-Policy") < page.index("<script>")
    assert policy.count("sha256") == 1
    digest = base64.b64encode(hashlib.sha256(b"theme()").digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert rest in PAGE


@pytest.mark.parametrize("changed", ["snippets/softmax/online.py", "records/g/x.json"])
def test_a_page_older_than_its_sources_is_made_again(repository, changed):
    root = repository.root
    repository.write(dict.fromkeys([changed, "new", "old"], ""))
    for path in root.rglob("*.py"):
        os.utime(path, (0, 0))
    os.utime(root / changed, (100, 100))
    os.utime(root / "old", (50, 50))
    pages = [SimpleNamespace(abs_dest_path=str(root / name)) for name in ("new", "old")]
    files: Any = SimpleNamespace(documentation_pages=lambda: pages)
    config: Any = SimpleNamespace(config_file_path=str(root / "mkdocs.yml"))
    hooks.on_files(files, config=config)
    assert (root / "new").exists()
    assert not (root / "old").exists()
