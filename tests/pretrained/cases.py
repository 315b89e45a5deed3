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
WHOLE = {**COMMON, "optimizer": "sgd", "lr": 0.02, "backbone_lr_scale": 0.1, "augmentation": "crop"}
ADAPTER = {**COMMON, "optimizer": "sgd", "lr": 0.05, "scheduler": "cosine", "augmentation": "crop"}

DUAL = {**PROMPT, "pull_lambda": 0.1, "g_prompt_length": 2, "e_prompt_length": 3, "prefix": "permuted"}

POINTS: dict[str, dict[str, Any]] = {
    "adam_adapter": {**ADAPTER, "ffn_num": 4},
    "afec": {**WHOLE, "ewc_lambda": 10, "forget_lambda": 0.001},
    "cls_er": {**WHOLE, "consistency": 0.1, "stable_rate": 0.7, "plastic_rate": 0.9, "ema_decay": 0.99},
    "coda_prompt": {**PROMPT, "pool_size": 12, "prompt_length": 4, "ortho_mu": 0.1},
    "dualprompt": {**DUAL, "pool_size": 2},
    "ease": {**ADAPTER, "ffn_num": 4, "alpha": 0.1},
    "er_pretrained": WHOLE,
    "hide_prompt": {**PROMPT, "prompt_length": 2, "contrast": 0.1, "tii_lr": 0.005, "alignment_lr": 0.005},
    "l2p": {**PROMPT, "pool_size": 4, "prompt_length": 2, "top_k": 2, "pull_lambda": 0.1},
    "lae": {**PROMPT, "modules": "adapter", "ema_decay": 0.99, "frozen_share": 0.6},
    "pgp": {**DUAL, "pool_size": 4, "prompt_energy": 0.5, "key_energy": 0.97, "projection": "feature"},
    "ranpac": {**ADAPTER, "petl": "adapter", "ffn_num": 4, "projection_dim": 40},
    "simplecil": {},
    "slca": {**WHOLE, "alignment_epochs": 2},
}
"""DualPrompt's pool is smaller than the number of tasks on purpose."""

assert set(POINTS) == set(PRETRAINED)
