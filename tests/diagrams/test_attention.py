"""The diagrams of the attention part: each is held against the code that it shows."""

import re

import pytest
import torch

from snippets.attention.outliers import rotate
from tests.diagrams import drawing, rectangles, texts


def test_scores_are_drawn_to_scale():
    q, k, s, _, tile = rectangles("attention/naive-scale.svg")
    assert s == [448, 448]
    assert (q, k) == ([448 * 128 / 8192, 448], [448, 448 * 128 / 8192])
    assert tile == [448 * 128 / 8192, 448 * 128 / 8192]


def test_a_score_and_its_terms_are_drawn_to_scale():
    q = torch.tensor([[1.0, -1, 0, 8, 1, -2, 1, 0]])
    k = torch.tensor([[0.0, 1, -1, 8, 2, 1, -1, 1]])
    q_turned, k_turned = rotate(q, k)
    pairs = (q, q_turned), (k, k_turned), (q * k, q_turned * k_turned)
    expected = [
        abs(number) * scale
        for both, scale in zip(pairs, (5, 5, 1.25), strict=True)
        for number in torch.cat(both).flatten().tolist()
        if number
    ]
    # Each bar is filled and has an outline.
    drawn = [height for _, height in rectangles("attention/fp8-outliers.svg")]
    assert drawn[::2] == drawn[1::2] == pytest.approx(expected, abs=0.06)


def test_what_is_left_of_a_weight_in_8_bits():
    # Each bar has three boxes: all digits, fewer, none. Two are filled, and outlined.
    drawn = rectangles("attention/fp8-weights.svg")
    for boxes, factor in ((drawn[:5], 1), (drawn[5:], 256)):
        digits, lost = boxes[0][0] / 30, (boxes[0][0] + boxes[2][0]) / 30
        below = torch.tensor([digits - 0.1, digits + 0.1, lost - 0.1, lost + 0.1])
        weights = (factor * torch.exp(-below.double())).to(torch.float8_e4m3fn).float()
        smallest = torch.finfo(torch.float8_e4m3fn).smallest_normal
        assert ((weights >= smallest) == torch.tensor([1, 0, 0, 0])).all()
        assert ((weights > 0) == torch.tensor([1, 1, 1, 0])).all()


def test_parts_are_like_single_keys():
    rows: dict[float, list[float]] = {}  # of numbers, by their height
    for _, y, words in texts(drawing("attention/partial-pairs.svg")):
        told = words.replace("\N{MINUS SIGN}\N{INFINITY}", "-inf")
        rows.setdefault(y, []).extend(map(float, re.findall(r"-inf|[\d.]+", told)))
    scores, values, lse, o, weights, last, whole = map(
        torch.tensor, (rows[y] for y in (57, 91, 153, 187, 222, 260, 282))
    )
    scores, values = scores.view(3, 2), values.view(3, 2)
    own = scores.softmax(dim=1).nan_to_num()
    expected = scores.logsumexp(dim=1), (own * values).sum(dim=1), lse.softmax(dim=0)
    torch.testing.assert_close((lse, o, weights), expected, atol=0.006, rtol=0)
    assert last[:4].tolist() == [weights[0], o[0], weights[2], o[2]]
    total = (scores.flatten().softmax(dim=0) * values.flatten()).sum()
    whole_lse = scores.flatten().logsumexp(dim=0)
    assert last[4].item() == pytest.approx(total.item(), abs=0.006)
    assert whole.item() == pytest.approx(whole_lse.item(), abs=0.006)
