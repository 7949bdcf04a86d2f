"""Tests of snippets/companions/wrong_locks.py: rows are lost where programs overlap."""

import torch

from snippets.companions import wrong_locks
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal


def test_rows_are_lost_where_programs_overlap(device: str) -> None:
    on_gpu = device == "cuda"
    # Many numbers for each thread to store, and many programs at a time.
    rows, cols, runs = (1024, 65536, 50) if on_gpu else (130, 40, 2)
    dy = torch.ones((rows, cols), device=device)
    found = [wrong_locks.bias_gradient(dy) for _ in range(runs)]
    wrong = [db for db in found if not (db == rows).all()]
    if not on_gpu:
        # The interpreter runs one program after the other: nothing is lost.
        assert not wrong
        return
    # In half of the runs at least, and never is a row counted twice.
    assert len(wrong) >= runs / 2
    assert all((db <= rows).all() for db in found)


def test_one_program_at_a_time_is_right(device: str) -> None:
    # A lock for each row: nobody waits, and nothing can be lost.
    for cols in (1, 40, 1000):
        dy = normal((9, cols), torch.float32, device)
        db = wrong_locks.bias_gradient(dy, locks=9)
        check_accuracy(db, dy.double().sum(dim=0), dy.sum(dim=0))


def test_fewer_locks_than_rows(device: str) -> None:
    dy = normal((70, 40), torch.float32, device)
    one_by_one = wrong_locks.bias_gradient(dy[:1], locks=1)
    assert torch.equal(one_by_one, dy[0])
    if device == "cpu":
        for locks in (1, 4):
            db = wrong_locks.bias_gradient(dy, locks=locks)
            check_accuracy(db, dy.double().sum(dim=0), dy.sum(dim=0))
