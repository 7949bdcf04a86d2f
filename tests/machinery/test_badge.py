"""Badges: each state, said in words, with what is known behind it."""

import json

import pytest

from tests.machinery.repository import FACTS, H200, L4, STALE
from verified_docs import layout
from verified_docs.evidence import records
from verified_docs.pages import badges

TESTS = "tests/snippets/softmax/test_online.py"
FAILED = {"state": "failed", "failed": ["test_a[<1>]"]}
SKIPPED = {"skipped": {"test_a": "no room", "test_b": "x"}}
FILES = {
    "wrong_tail": '"""Wrong on purpose."""\n',
    "gluon_copy": "# --8<-- [start:a]\n@gluon.jit\ndef f(): ...\n# --8<-- [end:a]\n",
    "calls_gluon": '"""Copies."""\n\nfrom snippets.hopper.gluon_x import y\n',
}
ONLINE, WRONG, COPY, CALLS = "online", *FILES
UNVERIFIED = "unverified", "Unverified: no test has run"
OUTDATED = "stale", "Stale: changed since its GPU run"
NEITHER = "failed", "Not verified: stale on H200; failed on L4"
# What was recorded of a file on the interpreter and on two GPUs, and its badge.
STATES = [
    (ONLINE, {}, UNVERIFIED),
    (ONLINE, {"": {}}, ("interpreter", "Interpreter only: no GPU run")),
    (ONLINE, {"": STALE}, UNVERIFIED),
    (ONLINE, {"": {}, H200: {}}, ("verified", "GPU-verified on H200")),
    (ONLINE, {H200: STALE}, OUTDATED),
    (ONLINE, {H200: FAILED | STALE}, OUTDATED),
    (ONLINE, {H200: {"manifest": {TESTS: "0" * 64}}}, OUTDATED),
    (ONLINE, {H200: {}, L4: {}}, ("verified", "GPU-verified on H200 and L4")),
    (ONLINE, {H200: {}, L4: STALE}, ("verified", "GPU-verified on H200; stale on L4")),
    (ONLINE, {H200: {}, L4: FAILED}, ("failed", "GPU-verified on H200; failed on L4")),
    (ONLINE, {H200: STALE, L4: FAILED}, NEITHER),
    (ONLINE, {H200: SKIPPED}, ("skipped", "Not verified: skipped too much on H200")),
    (WRONG, {}, ("wrong", f"Wrong on purpose: {UNVERIFIED[1]}")),
    (WRONG, {H200: {}}, ("wrong", "Wrong on purpose: its failure is tested on H200")),
    (WRONG, {H200: STALE}, ("wrong", f"Wrong on purpose: {OUTDATED[1]}")),
    (COPY, {"": {}}, UNVERIFIED),
    (COPY, {H200: {}}, ("verified", "GPU-verified on H200")),
    (CALLS, {"": {}}, UNVERIFIED),
]


@pytest.mark.parametrize(("name", "recorded", "badge"), STATES)
def test_the_state_in_words(repository, name, recorded, badge):
    for file, text in FILES.items():
        repository.snippet(f"softmax/{file}.py", text)
    for gpu, changes in recorded.items():
        repository.verify(gpu, **{name: changes})
    status = repository.status(f"softmax/{name}.py")
    assert (badges.kind(status), badges.label(status)) == badge
    only = name in (COPY, CALLS)
    shown = badges.render(status)
    assert ("Only a GPU runs it" in shown) == only
    assert ("s interpreter, on the CPU" in shown) == ("" in recorded and not only)


@pytest.mark.parametrize(
    ("name", "recorded", "words"),
    [
        ("online", {H200: {}, L4: STALE}, "GPU-verified on H200; stale on L4"),
        ("wrong_tail", {H200: {}}, "Wrong on purpose"),
    ],
)
def test_a_file_has_its_facts_once_on_a_page(repository, name, recorded, words):
    repository.snippet("softmax/wrong_tail.py", FILES[WRONG])
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
    repository.verify("NVIDIA A100", online={"manifest": {TESTS: "0" * 64}})
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
        f"<p>Changed since:</p><ul><li>{TESTS}</li></ul>",
        "<p>Failed:</p><ul><li>test_a[&lt;1&gt;]</li></ul>",
        "<p>No error is measured:</p><ul><li>it copies</li></ul>",
        '<a href="../../records/nvidia-l4/verification.json">',
        '<a href="../../tests.zip">',
        f"<code>git checkout c0ffee &amp;&amp; python -m pytest {TESTS}</code>",
        "Not run on NVIDIA T4.",
        f"<code>{status.snippet.sha256}</code>",
    ):
        assert text in shown
    assert "<p>Made" not in shown


@pytest.mark.parametrize(
    ("dirty", "published", "commit", "made"),
    [
        ("no", "", "c0ffee", ""),
        ("yes", "", "", ""),
        ("no", "c0ffee", "c0ffee", "<p>Made by the run that"),
        ("no", "bad", "bad", "<p>Made earlier: the run"),
    ],
)
def test_who_has_the_files_of_a_run(repository, dirty, published, commit, made):
    repository.verify(H200, online={})
    status = repository.status()
    status.fresh[0].facts["dirty"] = dirty
    shown = badges.render(status, published=published)
    checkout = f"git checkout {commit} &amp;&amp; " if commit else ""
    assert f"<code>{checkout}python -m pytest" in shown
    assert made in shown
    assert ("<p>Made" in shown) == bool(made)


def test_a_gpu_may_have_several_versions_of_triton(repository):
    path = repository.verify(H200, online={})
    record = records.load(path)
    facts = FACTS | {"gpu": H200, "triton": "3.7.1"}
    entry = repository.entry("softmax/online.py", run="later", cases=34)
    new = {"softmax/online.py": entry}
    records.merge(path, {"later": facts}, new, repository.root)
    # The demo passed under sanitizers with one of them, and with other files.
    for output, changes in (("synccheck", {}), ("racecheck", STALE)):
        passed = repository.entry("softmax/online.py", output=output, **changes)
        kept = {"softmax/online.py": passed}
        beside = path.with_name(layout.SANITIZED)
        records.merge(beside, record.runs, kept, repository.root)
        status = repository.status()
        found = [(run.facts["triton"], run.sanitized) for run in status.runs]
        assert found == [(FACTS["triton"], "" if changes else output), ("3.7.1", "")]
        assert ("<dd>synccheck</dd>" in badges.render(status)) == (not changes)
    versions = f"torch {FACTS['torch']}, triton"
    shown = badges.table([status])
    assert f"{versions} {FACTS['triton']}:<br>12 cases passed" in shown
    assert f"{versions} 3.7.1:<br>34 cases passed" in shown
    assert f"with Triton {FACTS['triton']} and 3.7.1" in badges.proof([status], 0)


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
