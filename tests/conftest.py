"""What every test shares: the interpreter where there is no GPU, and the recording."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    # Triton reads this once, when it is imported.
    os.environ["TRITON_INTERPRET"] = "1"

# So that asserts of shared modules are seen too: pytest_assertion_pass.
pytest.register_assert_rewrite("tests.harness", "tests.snippets")
pytest_plugins = ["pytester", "verified_docs.evidence.plugin"]
