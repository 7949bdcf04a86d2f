"""Badges: each state, said in words, with what is known behind it."""

from pathlib import Path

import pytest

from tests.machinery.repository import Repository
from verified_docs.evidence.records import RecordError
from verified_docs.pages import badges

STALE = {"sha256": "0" * 64}
H200 = ("records/nvidia-h200", "NVIDIA H200")
L4 = ("records/nvidia-l4", "NVIDIA L4")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_unverified(repository: Repository) -> None:
    assert repository.badge() == ("unverified", "Unverified: no test has run")


def test_interpreter_only(repository: Repository) -> None:
    repository.interpret(online={})
    assert repository.badge() == ("interpreter", "Interpreter only: no GPU run")
    repository.interpret(online=STALE)
    assert repository.badge()[0] == "unverified"


def test_verified(repository: Repository) -> None:
    repository.interpret(online={})
    repository.verify(*H200, online={})
    assert repository.badge() == ("verified", "GPU-verified on NVIDIA H200")


def test_stale_if_the_file_or_its_test_changes_by_a_byte(
    repository: Repository,
) -> None:
    for changed in (
        "snippets/softmax/online.py",
        "tests/snippets/softmax/test_online.py",
    ):
        repository.verify(*H200, online={})
        assert repository.badge()[0] == "verified"
        path = repository.root / changed
        path.write_bytes(path.read_bytes() + b"\n")
        assert repository.badge() == ("stale", "Stale: changed since its GPU run")
    (repository.root / "tests/snippets/softmax/test_online.py").unlink()
    assert repository.badge()[0] == "stale"


def test_gpus_that_disagree_are_both_named(repository: Repository) -> None:
    repository.verify(*H200, online={})
    repository.verify(*L4, online={})
    assert repository.badge()[1] == "GPU-verified on NVIDIA H200, NVIDIA L4"
    repository.verify(*L4, online=STALE)
    assert repository.badge() == (
        "verified",
        "GPU-verified on NVIDIA H200; stale on NVIDIA L4",
    )


def test_wrong_on_purpose(repository: Repository) -> None:
    repository.snippet("softmax/wrong_tail.py", '"""Wrong on purpose."""\n')
    words = {}
    words["nothing"] = repository.badge("softmax/wrong_tail.py")
    repository.interpret(wrong_tail={})
    words["interpreter"] = repository.badge("softmax/wrong_tail.py")
    repository.verify(*H200, wrong_tail={})
    words["gpu"] = repository.badge("softmax/wrong_tail.py")
    repository.verify(*H200, wrong_tail=STALE)
    words["stale"] = repository.badge("softmax/wrong_tail.py")
    assert {kind for kind, _ in words.values()} == {"wrong"}
    assert len({text for _, text in words.values()}) == 4
    assert all(text.startswith("Wrong on purpose: ") for _, text in words.values())
    assert "NVIDIA H200" in words["gpu"][1]


def test_the_details(repository: Repository) -> None:
    skipped = {"test_a[1]": "no <fp8>", "test_a[2]": "no <fp8>", "test_b": "x"}
    repository.verify(
        *H200,
        online={"cases": 30, "skipped": skipped},
    )
    repository.verify(*L4, online=STALE)
    old = {"test_sha256": "0" * 64}
    repository.verify("records/nvidia-a100", "NVIDIA A100", online=old)
    repository.verify("records/nvidia-t4", "NVIDIA T4", three_pass={})
    status = repository.evidence().status("softmax/online.py")
    shown = badges.render(status, "../../")
    for text in (
        ">GPU-verified on NVIDIA H200; "
        "stale on NVIDIA A100; stale on NVIDIA L4</span></summary>",
        "<dt>Triton</dt><dd>triton 1</dd>",
        "<dt>Date</dt><dd>2026-11-21</dd>",
        "<dt>Cases passed</dt><dd>30</dd>",
        "1.2\u00a0\N{MULTIPLICATION SIGN}\u00a010⁻⁷",
        "test_a[&lt;1&gt;]",
        "<li>no &lt;fp8&gt; (2 cases)</li><li>x (1 case)</li>",
        "<strong>NVIDIA L4</strong> (stale)",
        "<p>Changed since:</p><ul><li>snippets/softmax/online.py</li></ul>",
        "<strong>NVIDIA A100</strong> (stale)",
        "<p>Changed since:</p><ul><li>tests/snippets/softmax/test_online.py</li></ul>",
        '<a href="../../records/nvidia-l4/verification.json">',
        "<code>git checkout c0ffee &amp;&amp; "
        "python -m pytest tests/snippets/softmax/test_online.py</code>",
        "Not run on NVIDIA T4.",
        f"<code>{status.snippet.sha256}</code>",
    ):
        assert text in shown


def test_what_failed_is_said_and_listed(repository: Repository) -> None:
    repository.verify(*H200, online={})
    repository.verify(*L4, online={"state": "failed", "failed": ["test_a[<1>]"]})
    assert repository.badge() == (
        "failed",
        "GPU-verified on NVIDIA H200; failed on NVIDIA L4",
    )
    shown = badges.render(repository.evidence().status("softmax/online.py"))
    assert "<p>Failed:</p><ul><li>test_a[&lt;1&gt;]</li></ul>" in shown


def test_too_much_skipped_is_not_verified(repository: Repository) -> None:
    repository.verify(*H200, online={"skipped": {"test_a": "no room", "test_b": "x"}})
    assert repository.badge() == (
        "skipped",
        "Not verified: skipped too much on NVIDIA H200",
    )


def test_what_has_no_error_says_why(repository: Repository) -> None:
    repository.verify(*H200, online={"errors": {}, "no_accuracy": "it copies"})
    shown = badges.render(repository.evidence().status("softmax/online.py"))
    assert "<p>No error is measured:</p><ul><li>it copies</li></ul>" in shown


@pytest.mark.parametrize(
    ("published", "said"),
    [("", ""), ("c0ffee", "Made by the run that"), ("bad", "Made earlier: the run")],
)
def test_whether_publishing_ran_it_again(
    repository: Repository, published: str, said: str
) -> None:
    repository.verify(*H200, online={})
    status = repository.evidence().status("softmax/online.py")
    shown = badges.render(status, published=published)
    assert said in shown
    assert ("<p>Made" in shown) == bool(said)


def test_several_gpus_need_a_choice_to_quote(repository: Repository) -> None:
    repository.verify(*H200, online={})
    assert repository.evidence().quoted == "nvidia-h200"
    repository.verify(*L4, online={})
    with pytest.raises(RecordError, match="records of nvidia-h200, nvidia-l4: set the"):
        _ = repository.evidence().quoted
    assert repository.evidence("nvidia-l4").quoted == "nvidia-l4"


def test_the_proof(repository: Repository) -> None:
    repository.verify(*H200, online={"cases": 1200})
    statuses = [repository.evidence().status("softmax/online.py")]
    verdicts = {"snippets": {"softmax/online.py": {"caught": {"a": "b", "c": "d"}}}}
    shown = badges.proof(statuses, verdicts)
    for fact in ("1 of 1", "1,200", "2", "NVIDIA H200", "2026-11-21"):
        assert f"<strong>{fact}</strong>" in shown
    repository.verify(*H200, online=STALE)
    statuses = [repository.evidence().status("softmax/online.py")]
    assert "<strong>0 of 1</strong>" in badges.proof(statuses, verdicts)
