"""What every test shares: the interpreter where there is no GPU, and the recording."""

import os

import torch

if not torch.cuda.is_available():
    # Triton reads this once, when it is imported.
    os.environ["TRITON_INTERPRET"] = "1"

pytest_plugins = ["pytester", "verified_docs.evidence.plugin"]
