"""What stands beside the pages: policies, zips, templates, and what is made again."""

import base64
import hashlib
import os
import re
import shutil
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from tests.machinery.repository import ONLINE, ROOT
from tests.machinery.small_site import PAGE
from verified_docs import layout
from verified_docs.pages import archive, hooks
from verified_docs.pages.policy import RULES, apply

ZIPS = ("snippets.zip", "tests.zip", "zips/softmax/calls.zip")
CALLS = "from snippets.softmax.online import online\n"
UNUSED = ("frame", "manifest", "media", "object")
HTML = """<!doctype html>
<html><head><meta charset="utf-8"><script>theme()</script></head><body>
<script src="theme.js"></script><article><script>author()</script></article>
<script>theme()</script><script type="application/json">{}</script></body></html>"""


def test_nothing_comes_from_elsewhere_and_no_script_of_a_page_runs():
    rules = {name: values for name, *values in map(str.split, RULES.split(";"))}
    for kind in ("base-uri", "form-action", *(f"{each}-src" for each in UNUSED)):
        assert rules[kind] == ["'none'"]
    assert rules["default-src"] == ["'self'"]  # Of Firefox, for the next page.
    assert rules["script-src"] == ["'self'"]
    assert rules.pop("style-src") == ["'self'", "'unsafe-inline'"]  # Temml's are.
    harmless = {"'self'", "'none'", "data:"}
    assert {v for values in rules.values() for v in values} <= harmless


def test_scripts_of_the_theme_may_run_and_those_of_an_author_may_not(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part/index.html").write_text(HTML)
    apply(tmp_path)
    page = (tmp_path / "part/index.html").read_text()
    policy, _, rest = page.partition('content="')[2].partition('">')
    assert page.index("Content-Security-Policy") < page.index("<script>")
    assert policy.count("sha256") == 1
    digest = base64.b64encode(hashlib.sha256(b"theme()").digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert rest in HTML
    # What stands before its policy would be under none.
    (tmp_path / "early.html").write_text(HTML.replace("<head>", "<head><script>"))
    with pytest.raises(ValueError, match="no page may begin like this"):
        apply(tmp_path)


def test_the_zips_are_the_files_and_nothing_of_the_time(repository, tmp_path):
    cache = "snippets/softmax/__pycache__/online.py"
    repository.write({"LICENSE": "MIT License\n", cache: "x = 1\n"})
    repository.snippet("softmax/calls.py", CALLS)
    repository.write({f"{tmp_path}/zips/softmax/gone.zip": ""})
    written = []
    for _ in range(2):
        archive.write(tmp_path, repository.root)
        written.append([(tmp_path / name).read_bytes() for name in ZIPS])
        repository.snippet("softmax/online.py", ONLINE)  # The same bytes, later.
    assert written[0] == written[1]
    files = (path.relative_to(tmp_path) for path in tmp_path.rglob("*.zip"))
    assert {path.as_posix() for path in files} == {*ZIPS}
    # Unpacked beside code of a reader's own, they must not replace the licence of that.
    own = "snippets/LICENSE"
    called = [own, "snippets/softmax/calls.py", "snippets/softmax/online.py"]
    names = [*called, "snippets/softmax/three_pass.py"]
    with ZipFile(tmp_path / ZIPS[0]) as found:
        assert found.namelist() == names
        assert found.read(names[2]).decode() == ONLINE
    with ZipFile(tmp_path / ZIPS[1]) as found:
        assert {"LICENSE", *names[1:], layout.test_file("softmax/online.py")} <= {
            *found.namelist()
        }
        assert not any("__pycache__" in name for name in found.namelist())
    with ZipFile(tmp_path / ZIPS[2]) as found:
        assert found.namelist() == called


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


HOST = "https://github.com/someone/kernels"
LINKS = {f"{HOST}/{end}" for end in ("", "edit/main/" + PAGE, "issues/new?title=Page")}


def test_a_link_to_a_page_has_a_card_and_a_repository_has_links(site):
    def built() -> str:
        site.build()
        return site.read("site/part/page/index.html")

    shutil.copytree(ROOT / "overrides", site.root / "overrides")
    site.edit("mkdocs.yml", "  font: false", "  font: false\n  custom_dir: overrides")
    page = built()
    assert (ROOT / "docs/assets/card.png").is_file()
    card = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert card["title"] == "Page"
    assert card["description"] == "A page with one of everything."
    assert card["image"] == "http://127.0.0.1:8000/assets/card.png"
    assert not any(each in page for each in ("issues/new", "md-source", "/edit/"))
    site.edit("mkdocs.yml", "theme:\n", f"repo_url: {HOST}/\ntheme:\n")
    page = built()
    assert set(re.findall(r'href="([^"]*)"', page)) >= LINKS
    # The theme would ask the host for its stars.
    assert 'data-md-component="source"' not in page
