"""The page "Check it yourself": what a browser hashes agrees with a record, or not."""

import hashlib
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from tests.site.server import SITE

ROOT = Path(__file__).parents[2]
NAME = "softmax/online.py"
RECORD = next(SITE.glob("records/*/verification.json"))


def confirm(page: Page, address: str) -> str:
    """What the page says of the snippet."""
    page.goto(address + "reference/check-it-yourself/")
    page.locator("form.confirm select").select_option(NAME)
    page.locator("form.confirm button:enabled").click()
    page.locator("form.confirm output :is(div, p)").last.wait_for()
    return page.locator("form.confirm output").inner_text()


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "They agree: 7 cases passed on these bytes."),
        ({"state": "failed", "failed": ["a"]}, "They agree, but 1 cases failed."),
        ({"manifest": {f"snippets/{NAME}": "0" * 64}}, "The file has changed since"),
    ],
)
def test_the_verdict(page: Page, address: str, changes: dict, verdict: str) -> None:
    digest = hashlib.sha256((ROOT / "snippets" / NAME).read_bytes()).hexdigest()
    entry = {"run": "a run", "state": "passed", "cases": 7}
    entry |= {"manifest": {f"snippets/{NAME}": digest}}
    facts = {"gpu": "a GPU", "date": "", "torch": "", "triton": "", "commit": ""}
    record = {"runs": {"a run": facts}, "snippets": {NAME: {"": entry | changes}}}

    def answer(route: Route) -> None:
        route.fulfill(body=json.dumps(record), content_type="application/json")

    page.route("**/verification.json", answer)
    said = confirm(page, address)
    assert f"a GPU: {verdict}" in said
    assert digest in said


def test_the_real_record_is_read(page: Page, address: str) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    (known, *_) = record["snippets"][NAME].values()
    said = confirm(page, address)
    assert known["manifest"][f"snippets/{NAME}"] in said
    assert record["runs"][known["run"]]["gpu"] in said
