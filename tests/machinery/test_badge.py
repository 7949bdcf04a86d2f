"""Badges: each state, said in words, with what is known behind it."""

import json

import pytest

from tests.machinery.repository import FACTS, H200, L4, Repository
from verified_docs import layout
from verified_docs.evidence import records
from verified_docs.pages import badges

STALE = {"sha256": "0" * 64}
FAILED = {"state": "failed", "failed": ["test_a[<1>]"]}
SKIPPED = {"skipped": {"test_a": "no room", "test_b": "x"}}


def badge(repository: Repository, name: str = "softmax/online.py") -> tuple[str, str]:
    """The kind and the words of a snippet's badge."""
    status = repository.status(name)
    return badges.kind(status), badges.label(status)


# What was recorded of online.py on the interpreter and on two GPUs, and its badge.
STATES = [
    ({}, ("unverified", "Unverified: no test has run")),
    ({"": {}}, ("interpreter", "Interpreter only: no GPU run")),
    ({"": STALE}, ("unverified", "Unverified: no test has run")),
    ({"": {}, H200: {}}, ("verified", "GPU-verified on H200")),
    ({H200: STALE}, ("stale", "Stale: changed since its GPU run")),
    ({H200: FAILED | STALE}, ("stale", "Stale: changed since its GPU run")),
    ({H200: {"test_sha256": "0" * 64}}, ("stale", "Stale: changed since its GPU run")),
    ({H200: {}, L4: {}}, ("verified", "GPU-verified on H200 and L4")),
    ({H200: {}, L4: STALE}, ("verified", "GPU-verified on H200; stale on L4")),
    ({H200: {}, L4: FAILED}, ("failed", "GPU-verified on H200; failed on L4")),
    ({H200: SKIPPED}, ("skipped", "Not verified: skipped too much on H200")),
]


@pytest.mark.parametrize(("recorded", "shown"), STATES)
def test_the_state_in_words(repository, recorded, shown):
    for gpu, changes in recorded.items():
        repository.verify(gpu, online=changes)
    assert badge(repository) == shown


def test_wrong_on_purpose(repository):
    name = "softmax/wrong_tail.py"
    repository.snippet(name, '"""Wrong on purpose."""\n')
    shown = [badge(repository, name)]
    for gpu, changes in (("", {}), (H200, {}), (H200, STALE)):
        repository.verify(gpu, wrong_tail=changes)
        shown.append(badge(repository, name))
    assert {kind for kind, _ in shown} == {"wrong"}
    assert len({text for _, text in shown}) == 4
    assert all(text.startswith("Wrong on purpose: ") for _, text in shown)
    assert "H200" in shown[2][1]


GLUON = """\
# --8<-- [start:a]
@gluon.jit
def kernel():
    pass
# --8<-- [end:a]
"""


@pytest.mark.parametrize("text", [GLUON, "from snippets.hopper.gluon_x import y\n"])
def test_a_file_that_only_a_gpu_runs(repository, text):
    name, said = "softmax/gluon_copy.py", "Only a GPU runs it"
    repository.snippet(name, f'"""Copies."""\n\n{text}')
    assert said not in badges.render(repository.status("softmax/online.py"))
    repository.verify("", gluon_copy={})
    assert badge(repository, name) == ("unverified", "Unverified: no test has run")
    assert badges.INTERPRETER not in badges.render(repository.status(name))
    repository.verify(H200, gluon_copy={})
    assert badge(repository, name)[1] == "GPU-verified on H200"
    assert said in badges.render(repository.status(name))


@pytest.mark.parametrize(
    ("name", "recorded", "words"),
    [
        ("online", {H200: {}, L4: STALE}, "GPU-verified on H200; stale on L4"),
        ("wrong_tail", {H200: {}}, "Wrong on purpose"),
    ],
)
def test_a_file_has_its_facts_once_on_a_page(repository, name, recorded, words):
    repository.snippet("softmax/wrong_tail.py", '"""Wrong on purpose."""\n')
    for gpu, changes in recorded.items():
        repository.verify(gpu, **{name: changes})
    include = f'```python\n--8<-- "softmax/{name}.py"\n```'
    first, second, _ = repository.page(f"{include}\n\n{include}").split("</figure>")
    assert f' id="badge-softmax-{name}"' in first
    assert "SHA-256" in first
    assert f'<a href="#badge-softmax-{name}">' in second
    assert f">{words}</span></a>" in second
    assert "SHA-256" not in second


def test_the_details(repository, monkeypatch):
    skipped = {"test_a[1]": "no <fp8>", "test_a[2]": "no <fp8>", "test_b": "x"}
    with monkeypatch.context() as then:
        then.setitem(FACTS, "dirty", "yes")
        repository.verify(H200, online={"cases": 30, "skipped": skipped})
    repository.verify(L4, online=STALE)
    repository.verify("NVIDIA A100", online={"test_sha256": "0" * 64})
    repository.verify("NVIDIA A2", online=FAILED)
    repository.verify("NVIDIA A10", online={"errors": {}, "no_accuracy": "it copies"})
    repository.verify("NVIDIA T4", three_pass={})
    status = repository.status()
    shown = badges.render(status, "../../")
    for text in (
        "<dt>Triton</dt><dd>1</dd>",
        "<dt>Date</dt><dd>2026-01-01</dd>",
        "<dt>Not committed then</dt><dd>some files</dd>",
        "<dt>Cases passed</dt><dd>30</dd>",
        "1.2\u00a0\N{MULTIPLICATION SIGN}\u00a010⁻⁷",
        "test_a[&lt;1&gt;]",
        "<li>no &lt;fp8&gt; (2 cases)</li><li>x (1 case)</li>",
        "<strong>NVIDIA L4</strong> (stale)",
        "<p>Changed since:</p><ul><li>snippets/softmax/online.py</li></ul>",
        "<strong>NVIDIA A100</strong> (stale)",
        "<p>Changed since:</p><ul><li>tests/snippets/softmax/test_online.py</li></ul>",
        "<p>Failed:</p><ul><li>test_a[&lt;1&gt;]</li></ul>",
        "<p>No error is measured:</p><ul><li>it copies</li></ul>",
        '<a href="../../records/nvidia-l4/verification.json">',
        '<a href="../../tests.zip">',
        "<code>git checkout c0ffee &amp;&amp; "
        "python -m pytest tests/snippets/softmax/test_online.py</code>",
        "Not run on NVIDIA T4.",
        f"<code>{status.snippet.sha256}</code>",
    ):
        assert text in shown
    assert "<p>Made" not in shown


def test_no_commit_has_what_was_not_committed(repository):
    repository.verify(H200, online={})
    for dirty, checkout in (("no", True), ("yes", False)):
        status = repository.status()
        status.fresh[0].facts["dirty"] = dirty
        assert ("git checkout c0ffee" in badges.render(status)) is checkout


def test_whether_publishing_ran_it_again(repository):
    repository.verify(H200, online={})
    for published, said in (("c0ffee", "by the run that"), ("bad", "earlier: the run")):
        shown = badges.render(repository.status(), published=published)
        assert f"<p>Made {said}" in shown
        assert f"<code>git checkout {published} &amp;&amp; python -m pytest" in shown


def test_the_proof(repository):
    repository.verify(H200, online={"cases": 1200})
    files = records.hashes(repository.root, ["snippets/softmax/online.py"])
    for gpu, caught in (("", {"a": "b"}), (H200, {"c": "d"})):
        judged = {"softmax/online.py": {"manifest": files, "caught": caught}}
        verdicts = {"format": records.FORMAT, "snippets": judged}
        repository.write({layout.verdicts_file(gpu): json.dumps(verdicts)})
    shown = badges.proof([repository.status()], repository.evidence().caught)
    for fact in ("1 of 1", "1,200", "2", "H200", "2026-01-01"):
        assert f"<strong>{fact}</strong>" in shown
    repository.verify(H200, online=STALE)
    assert "<strong>0 of 1</strong>" in badges.proof([repository.status()], 0)
    repository.edit("snippets/softmax/online.py", "Online", "On line")
    assert repository.evidence().caught == 0
