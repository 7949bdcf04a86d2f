"""Bugs that the tests of snippets/attention/traffic.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant('"load k": programs * keys', '"load k": keys', "K loaded once", count=2),
    Mutant('"load q": launches * queries', '"load q": queries', "Q loaded once"),
    Mutant("(1 + launches) * o", "launches * o", "no first o"),
    Mutant("(1 + launches) * row", "launches * row", "no first m, l", count=2),
    Mutant("+ cast * queries", "", "no cast"),
    Mutant("(launches + cast) * o", "launches * o", "the cast reads nothing"),
    Mutant("cast = itemsize != STATE", "cast = True", "a cast of float32"),
    Mutant("STATE = 4", "STATE = 2", "a state in float16"),
    Mutant('"store lse": seq_q * STATE', '"store lse": 0', "no lse"),
    Mutant("ceil(seq_q / block_m), ceil", "seq_q // block_m, ceil", "part of it"),
    Mutant("programs = ceil(seq_q / block_m)\n", "programs = 1\n", "one program"),
    Mutant('"load s": scores', '"load s": 0', "scores that stay on the chip"),
    Mutant("8 * block_m + 4", "9 * block_m + 4", "one operation more in FA1"),
    Mutant("5 * block_m + 2", "4 * block_m + 2", "one less in FA2"),
    Mutant("head_dim + 2 * block_m\n", "head_dim\n", "a logarithm for nothing"),
    Mutant("return 4 * seq_q", "return 2 * seq_q", "half of the products"),
    Mutant("torch.softmax(s, dim=-1)", "s", "no softmax"),
]
