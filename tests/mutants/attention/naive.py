"""Bugs that the tests of snippets/attention/naive.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("q @ k.mT * scale", "q @ k.mT", "no scale"),
    Mutant("q @ k.mT * scale", "q @ k.mT / scale", "divided by the scale"),
    Mutant("head_dim**-0.5 if scale", "head_dim**-1 if scale", "1 / head_dim"),
    Mutant("if scale is None", "if not scale", "a scale of 0 ignored"),
    Mutant("seen.tril(seq_k - seq_q)", "seen.tril()", "aligned top left"),
    Mutant(
        "seen.tril(seq_k - seq_q)",
        "seen.tril(seq_k - seq_q - 1)",
        "a query does not see its own key",
    ),
    Mutant(
        's.where(seen.tril(seq_k - seq_q), float("-inf"))',
        "s.where(seen.tril(seq_k - seq_q), -1e6)",
        "a mask of -1e6",
    ),
    Mutant("p = p.masked_fill(blind, 0.0)", "pass", "a row that sees nothing is NaN"),
    Mutant(
        "p = p.masked_fill(blind, 0.0)", "p = p.nan_to_num()", "NaN of the input is 0"
    ),
    Mutant("p = torch.softmax(s, dim=-1)", "p = torch.softmax(s, dim=-2)", "columns"),
    Mutant("return p @ v", "return s @ v", "scores instead of weights"),
    Mutant("4 * tensor + 4 *", "4 * tensor + 2 *", "S and P counted once"),
    Mutant("heads * seq * seq * itemsize", "heads * seq * itemsize", "N, not N^2"),
    Mutant(" + head_dim**2) - head_dim", ")", "S and P alone fill the card"),
    Mutant("elements // 2", "elements", "one matrix of scores, not two"),
    Mutant("if head_dim == 0:", "if False:", "no components"),
    Mutant("v.shape != k.shape or v.dtype != q.dtype", "False", "any v"),
    Mutant("not same or ", "", "other leading dimensions of k"),
    Mutant("(k.shape[-1], k.dtype) != (head_dim, q.dtype)", "False", "any k"),
    Mutant("x.ndim < 2 or not x.is_floating_point()", "x.ndim < 2", "integers"),
    Mutant("x.ndim < 2 or not", "not", "a vector"),
]
