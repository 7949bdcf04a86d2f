"""Bugs that the tests of snippets/attention/outliers.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The rotation.
    Mutant("[1.0, -1.0]", "[1.0, 1.0]", "no matrix of Hadamard's"),
    Mutant("/ size**0.5", "/ head_dim**0.5", "not orthogonal for 40 columns"),
    Mutant("/ size**0.5", "", "scores times the number of columns"),
    Mutant("head_dim & -head_dim", "1", "nothing is mixed"),
    Mutant("head_dim & -head_dim", "min(head_dim & -head_dim, 16)", "few are mixed"),
    Mutant("manual_seed(seed)", "manual_seed(0)", "one matrix for all seeds"),
    Mutant(
        "torch.randint(2, (head_dim, 1), generator=generator)",
        "torch.randint(2, (head_dim, 1))",
        "another matrix in each call",
    ),
    Mutant("return signs * torch", "return torch", "no signs"),
    Mutant("generator) * 2 - 1", "generator)", "columns that are lost"),
    Mutant("return q.float() @ matrix", "return q.float() @ matrix.T", "q turned back"),
    Mutant(
        "return q.float() @ matrix, k.float() @ matrix",
        "return q.float() @ matrix, k.float()",
        "only q is turned",
    ),
    Mutant("q.float() @ matrix", "(q.float() @ matrix).to(q.dtype)", "dtype of q"),
    Mutant("head_dim, seed=seed)", "head_dim)", "the seed is ignored"),
    Mutant("k.shape[-1] != head_dim", "False", "another head_dim is not refused"),
    # The mean.
    Mutant(".mean(dim=-2, keepdim", ".mean(dim=-1, keepdim", "the mean of a row"),
    Mutant("dim=-2, keepdim=True", "dim=(0, -2), keepdim=True", "one for all heads"),
    Mutant("return k.float() - mean", "return k - mean.to(k.dtype)", "dtype of k"),
    Mutant("k.float().mean", "k.mean", "a mean in 16 bits"),
    Mutant("k.shape[-2] == 0", "False", "no key, and NaN"),
    # What float8 keeps, and its error.
    Mutant("dim=(-2, -1), keepdim=True", "dim=-1, keepdim=True", "a scale for a row"),
    Mutant("/ 448", "/ 240", "the largest number of another format"),
    Mutant(".clamp(min=2**-126)", "", "0 / 0"),
    Mutant("x.split(rows", "x.split(x.shape[-2]", "one scale for all rows"),
    Mutant("float8_e4m3fn)", "float8_e5m2)", "a bit fewer"),
    Mutant("rotate(q, centred)", "rotate(q, k)", "the mean stays"),
    Mutant("error(q, k, rows=128)", "error(q, k)", "a scale for all rows"),
    Mutant("/ exact.norm()).item()", "/ v.norm()).item()", "error of another size"),
    Mutant("(rounded(x, rows or x.shape[-2]) for", "(x for", "nothing is rounded"),
    Mutant("k[..., [3, 77]] += 30", "k[..., [3, 77]] += 3", "hardly an outlier"),
    Mutant("* 10 * (", "* (", "no outliers"),
]
