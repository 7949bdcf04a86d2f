"""The page "Check it yourself": what a browser hashes agrees with a record, or not."""

import hashlib
import json

import pytest
from playwright.sync_api import Page, Route

from tests.site.server import ROOT, SITE

NAME = "softmax/online.py"
RECORD = next(SITE.glob("records/*/verification.json"))


def confirmed(page: Page, address: str) -> str:
    """What the page says of the file, at the press of the button."""
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
    file = f"snippets/{NAME}"
    digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    (entry, *_) = record["snippets"][NAME].values()
    entry |= {"state": "passed", "cases": 7, "manifest": {file: digest}} | changes
    record["snippets"][NAME] = {"": entry}

    def answer(route: Route) -> None:
        route.fulfill(body=json.dumps(record), content_type="application/json")

    page.route("**/verification.json", answer)
    said = confirmed(page, address)
    assert f"{record['runs'][entry['run']]['gpu']}: {verdict}" in said
    assert digest in said


def test_a_record_that_does_not_come_hides_no_other(page: Page, address: str) -> None:
    folder = RECORD.parent.name
    page.route(
        f"**/{folder}/verification.json", lambda route: route.fulfill(status=404)
    )
    said = confirmed(page, address)
    assert f"{folder}: could not be read" in said
    assert "They agree" in said
