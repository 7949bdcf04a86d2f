"""Comparisons in words."""

import html
import re
from typing import Any

import pytest

from tests.machinery.repository import ONLINE, Repository
from verified_docs.pages import figures
from verified_docs.pages.claims import holds, read
from verified_docs.pages.errors import PageError

TIMES = {  # seconds, by kernel, at three widths
    "softmax/online.py": (2.0, 3.0, 5.0),
    "softmax/three_pass.py": (3.0, 4.5, 5.2),
    "torch.softmax": (4.0, 6.0),
}
MEASUREMENTS: list[dict[str, Any]] = [
    {"kernel": kernel, "cols": 1024 * 2**i, "bytes": 8 + i, "seconds": seconds}
    | ({"share": 0.5} if i else {})
    for kernel, times in TIMES.items()
    for i, seconds in enumerate(times)
]
ONE = "softmax seconds cols=4096 kernel=softmax/online.py"
TWO = "softmax seconds cols<=2048 kernel=softmax/online.py"


def claim(repository: Repository, query: str) -> str:
    lines = query.replace(" | ", "\n    ")
    claims = read(repository.evidence("nvidia-h200"), f"a < b: {lines}")
    return holds(claims, "a < b")


@pytest.fixture(autouse=True)
def recorded(repository: Repository) -> None:
    repository.measure(MEASUREMENTS)


@pytest.mark.parametrize(
    ("query", "extent"),
    [
        (f"{TWO} < 5/9 kernel=torch.softmax", "0.500 times"),
        (f"{TWO} < 0.7 kernel=softmax/three_pass.py,torch.softmax", "0.500 to 0.667"),
        (f"{TWO},softmax/three_pass.py < cols=4096", "0.400 to 0.865 times"),
        (f"{ONE} ~ kernel=softmax/three_pass.py", "0.962 times"),
        (f"{ONE} ~ 5.2", "5.00"),
        (f"{ONE.replace('seconds', 'seconds*bytes')} ~ 50", "50.0"),
        (f"{ONE} > 4.9 | {ONE} > 1.6 cols=2048", "1.67 times"),
    ],
)
def test_what_holds(repository, query, extent):
    shown = claim(repository, query)
    assert shown.startswith('<span class="holds" title="softmax seconds')
    assert f"holds: {extent}" in shown
    assert "(records/nvidia-h200/softmax.json)" in shown
    assert shown.endswith('">a &lt; b</span>')


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        # One of two pairs fails.
        (
            f"{TWO} < 0.6 cols=4096",
            "3 (kernel=softmax/online.py cols=2048) is not < 0.6 times "
            "5 (kernel=softmax/online.py cols=4096), but 0.600 times",
        ),
        (f"{ONE} > 5", "5 (kernel=softmax/online.py cols=4096) is not > 5"),
        (f"{ONE} ~ cols=2048", "is not ~ 1 times 3"),
    ],
)
def test_what_is_false(repository, query, reason):
    shown = html.unescape(claim(repository, query))
    assert "is false: " in shown
    assert reason in shown
    assert shown.endswith("a < b (false)</span>")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (f"{ONE} < kernel=torch.softmax", "no measurement with cols=4096 kernel=torch"),
        (
            "softmax seconds kernel=softmax/online.py < kernel=torch.softmax",
            "kernel=softmax/online.py cols=4096 has no partner with kernel=torch",
        ),
        (f"{ONE} < kernel=softmax/three_pass.py,torch.sotfmax", "no kernel 'torch.sot"),
        (f"{TWO} rows>=1 < 5", "no measurement has 'rows'"),
        (f"{TWO} cols>=4096 < 5", "no measurement has cols<=2048 kernel=softmax/onl"),
        (f"{ONE} < 5 torch.softmax", "'torch.softmax' is no filter"),
        (f"{ONE} cols=1024 < 5", "a filter stands twice"),
        (f"{ONE} >", "nothing is compared"),
        (ONE, "nothing is compared"),
        # Of none, or not of all: what lacks the figure is not left out in silence.
        (f"{ONE.replace('seconds', 'second')} > 5", "cols=4096 has no second"),
        (f"{TWO.replace('seconds', 'share')} > 0", "online.py cols=1024 has no share"),
        (f"{ONE} ~ kernel=softmax/online.py", "compared with itself"),
    ],
)
def test_what_is_refused(repository, query, reason):
    with pytest.raises(PageError, match=re.escape(reason)):
        claim(repository, query)


def test_the_same_words_of_two_things_and_a_list_of_what_they_rest_on(repository):
    claims = f"a: {ONE} > 1\na | 2: {ONE} > 9"
    shown = repository.page(
        f"So {{holds: a}}, {{holds: a | 2}}.\n\n```claims\n{claims}\n```"
    )
    assert re.findall("<span[^>]*>(.*?)</span>", shown) == ["a", "a (false)"]
    link = '<a href="/records/nvidia-h200/softmax.json">'
    true, false = re.findall("<li>(.*)</li>", shown.replace("</li>", "</li>\n"))
    assert true == f"a: <code>{html.escape(f'{ONE} > 1')}</code>, {link}holds: 5.00</a>"
    assert f"9</code>, {link}is false: 5 (" in false
    assert false.endswith("</a> (false)")


@pytest.mark.parametrize(
    ("text", "fence", "reason"),
    [
        ("{holds: a}", f"b: {ONE} > 1", "no fence says what 'a' rests on"),
        ("a", f"a: {ONE} > 1", "no {holds: a} is on the page"),
        ("{holds: a}", f"a: {ONE} > 1\na: {ONE} > 2", "'a' stands twice"),
        ("{holds: a}", f"   {ONE} > 1", "a line is written"),
    ],
)
def test_words_and_fence_belong_together(repository, text, fence, reason):
    with pytest.raises(PageError, match=re.escape(reason)):
        repository.page(f"So {text}.\n\n```claims\n{fence}\n```")


def test_what_is_stale_or_not_yet_measured(repository):
    repository.snippet("softmax/new.py", ONLINE)
    shown = claim(repository, f"{ONE} > 1 kernel=softmax/new.py")
    assert shown == f'<span class="holds">a &lt; b ({figures.unmeasured()})</span>'
    repository.edit("snippets/softmax/three_pass.py", '"""', '"""So: ')
    shown = claim(repository, f"{ONE} < kernel=softmax/three_pass.py")
    assert 'class="holds stale"' in shown
    assert shown.endswith("a &lt; b (stale)</span>")
    assert "stale" not in claim(repository, f"{ONE} > 4")
    repository.write({"benchmarks/parts/softmax/measurements.py": ""})
    assert "(stale)" in claim(repository, f"{ONE} > 4")
