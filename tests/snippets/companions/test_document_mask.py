"""Tests of snippets/companions/document_mask.py."""

from typing import Any

import pytest
import torch

from snippets.companions import document_mask
from tests.harness.inputs import normal, qkv
from tests.snippets.companions.variants import Terms, VariantTests


def last(docs: torch.Tensor, seq: int) -> torch.Tensor:
    """The documents of the last tokens."""
    return docs[:, docs.shape[1] - seq :]


class TestDocumentMask(VariantTests):
    function = staticmethod(document_mask.attention)
    operator = "document_attention"
    given = (
        "docs",
        {
            "documents of the queries alone": lambda x: x[:, :3],
            "documents of one sequence": lambda x: x[0],
            "documents of a batch of one": lambda x: x[:1],
            "documents in 64 bits": lambda x: x.long(),
            "documents elsewhere": lambda x: x.to("meta"),
        },
    )

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """Documents of 7 tokens and more; another batch entry has others."""
        batch, seq = q.shape[0], max(q.shape[2], k.shape[2])
        tokens = torch.arange(seq, device=q.device)
        each = torch.arange(batch, device=q.device)[:, None]
        return {"docs": ((tokens + 3 * each) // (7 + 4 * each) - 1).int()}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, docs: torch.Tensor
    ) -> Terms:
        """The mask knows of documents."""
        of_q, of_k = (last(docs, seq)[:, None] for seq in s.shape[-2:])
        return s, seen & (of_q[..., None] == of_k[..., None, :]), v

    def operands(self, extras: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """The operator has the documents of the queries and of the keys."""
        return [last(extras["docs"], seq)[:, None, :, None] for seq in self.seqs], []

    def calls(self, *inputs: torch.Tensor) -> list[tuple[Any, tuple[Any, ...]]]:
        """Of these inputs."""
        self.seqs = [x.shape[2] for x in inputs[:2]]
        return super().calls(*inputs)

    # Of a pair that is masked, 0 * NaN is NaN here, as it is under a causal mask.
    test_nan = None

    def test_documents_do_not_hear_of_each_other(
        self, causal: bool, device: str
    ) -> None:
        # Three documents in one sequence, and each of them alone.
        q, k, v, do, dlse = self.inputs(40, 40, device, dtype=torch.float32)
        starts = 0, 11, 12, 40
        docs = torch.zeros(1, 40, dtype=torch.int32, device=device)
        for i in range(3):
            docs[:, starts[i] : starts[i + 1]] = 5 - i
        options = {"causal": causal}
        found = self.run(q, k, v, do, dlse, extras={"docs": docs}, **options)
        for i in range(3):
            part = slice(starts[i], starts[i + 1])
            alone = (x[:, :, part] for x in (q, k, v, do, dlse))
            one = {"docs": docs[:, part] * 0}
            for name, x in self.run(*alone, extras=one, **options).items():
                each = found[name][:, :, part]
                torch.testing.assert_close(each, x, rtol=1e-5, atol=1e-5)

    def test_documents_in_any_order(self, device: str) -> None:
        inputs = self.inputs(37, 37, device, lead=(2, 2))
        docs = (torch.arange(74, device=device) * 7 % 5).view(37, 2).int().mT
        self.check(*inputs, causal=True, extras={"docs": docs})
        self.check(*inputs, extras={"docs": docs[:, :1].expand(2, 37)})

    @pytest.mark.parametrize("lengths", [(40, 9), (9, 40)], ids=str)
    def test_a_query_without_its_document(
        self, lengths: tuple[int, int], device: str
    ) -> None:
        # Its last tile of keys, or all of them, belong to others.
        q, k, v = qkv((1, 2), (1, 1), *lengths, 16, torch.float16, device)
        do = normal(q.shape, q.dtype, device, seed=5)
        docs = torch.arange(40, device=device)[None].int() // 20
        found = self.check(q, k, v, do, do[..., 0].float(), extras={"docs": docs})
        blind = 20 if lengths[0] == 40 else 0
        assert (found["o"][:, :, :blind] == 0).all()
        assert (found["lse"][:, :, :blind] == -torch.inf).all()
        assert (found["o"][:, :, blind:] != 0).all()
