"""One small point per method, used by the tests of what all methods promise."""

from __future__ import annotations

from typing import Any

from reference.catalogue import PRETRAINED

COMMON = {
    "epochs": 2,
    "lr": 0.002,
    "scheduler": "constant",
    "batch_size": 8,
    "weight_decay": 0.0005,
    "optimizer": "adam",
}
PROMPT = {**COMMON, "augmentation": "crop"}
ADAPTER = {**COMMON, "optimizer": "sgd", "lr": 0.05, "scheduler": "cosine", "augmentation": "crop"}

POINTS: dict[str, dict[str, Any]] = {
    "simplecil": {},
    "adam_adapter": {**ADAPTER, "ffn_num": 4},
    "ranpac": {**ADAPTER, "petl": "adapter", "ffn_num": 4, "projection_dim": 40},
    "ease": {**ADAPTER, "ffn_num": 4, "alpha": 0.1},
    "l2p": {**PROMPT, "pool_size": 4, "prompt_length": 2, "top_k": 2, "pull_lambda": 0.1},
    "dualprompt": {
        **PROMPT,
        "pool_size": 2,
        "pull_lambda": 0.1,
        "g_prompt_length": 2,
        "e_prompt_length": 3,
        "prefix": "permuted",
    },
    "coda_prompt": {**PROMPT, "pool_size": 12, "prompt_length": 4, "ortho_mu": 0.1},
}
"""DualPrompt's pool is smaller than the number of tasks on purpose."""

assert set(POINTS) == set(PRETRAINED)
