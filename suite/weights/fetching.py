"""Getting weights into the store: fetched through timm on this machine, or added from a file.

Nothing is ever fetched inside a container. What is stored is in timm's own layout, without the classification head,
and says itself what it is: the metadata of the safetensors file have the entry `backbone`, JSON with either the name of
a ViT of timm or the numbers that make one, and the input that it expects.
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

from suite.errors import DataError, UsageError
from suite.weights.known import KNOWN
from suite.weights.manifest import Pretraining, WeightsManifest
from suite.weights.store import Weights, file_sha256, keep


def fetch(name: str, root: Path | None = None) -> Weights:
    """Download the known weights `name` and store them.

    Raises UsageError for an unknown name, DataError with the steps to take where they cannot be had from here.
    """
    if name not in KNOWN:
        raise UsageError(f"{name[:200]!r} cannot be fetched.", f"Known are: {', '.join(KNOWN)}.")
    known = KNOWN[name]
    steps = (
        f"On a machine with access to {known.source}, download its file of weights (licence: {known.licence}), bring "
        f"it here, and run: suite weights add {name} --from FILE"
    )
    try:
        model = _timm_model(name)
    except ImportError as error:
        raise DataError(
            "Fetching weights needs timm.", "Install the extra: pip install 'continual-suite[learners]'."
        ) from error
    except Exception as error:
        raise DataError(f"{name} could not be fetched ({type(error).__name__}).", steps) from error
    return _keep_timm_model(name, model, known.licence, known.source, _revision(name), root)


def add(
    name: str, file: Path, root: Path | None = None, licence: str | None = None, source: str | None = None
) -> Weights:
    """Store the weights in `file` as `name`.

    The file either says itself what it is (see above) or holds one of timm's ViTs, as published, and `name` is its name
    there. Raises DataError when it is neither.
    """
    tensors, metadata = _header(file)
    known = KNOWN.get(name)
    licence = licence or (known.licence if known else "not stated")
    source = source or (known.source if known else file.name)
    if "backbone" in metadata:
        _check_described(file, metadata["backbone"])
        manifest = WeightsManifest(
            name=name,
            sha256=file_sha256(file),
            size_bytes=file.stat().st_size,
            parameters=tensors,
            licence=licence,
            source=source,
            remark=known.remark if known else "",
            pretraining=_stated(metadata) or (known.pretraining if known else None),
        )
        return keep(file, manifest, root)
    try:
        model = _timm_model(name, file)
    except ImportError as error:
        raise DataError(
            "Reading these weights needs timm.", "Install the extra: pip install 'continual-suite[learners]'."
        ) from error
    except Exception as error:
        raise DataError(
            f"{file} does not hold the weights {name!r} of timm ({type(error).__name__}: {str(error)[:200]}).",
            "Give the name that the file has in timm, or a file written by `suite weights pretrain`.",
        ) from error
    return _keep_timm_model(name, model, licence, source, "", root)


def _header(file: Path) -> tuple[int, dict[str, str]]:
    """Numbers in a safetensors file, and its metadata; no tensor is read. Raises DataError."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            count = sum(math.prod(opened.get_slice(key).get_shape()) for key in opened.keys())  # noqa: SIM118
            return count, opened.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"{file} is no readable safetensors file.", "Give the file `model.safetensors` of the source."
        ) from error


def _check_described(file: Path, text: str) -> None:
    try:
        described = json.loads(text)
    except ValueError:
        described = None
    if not isinstance(described, dict) or "input" not in described:
        raise DataError(
            f"The description in {file} is malformed.", "Write the file again with `suite weights pretrain`."
        )


def _stated(metadata: dict[str, str]) -> Pretraining | None:
    return Pretraining.model_validate_json(metadata["pretraining"]) if "pretraining" in metadata else None


def _timm_model(name: str, file: Path | None = None) -> Any:
    """A ViT of timm with pretrained weights: from `file`, else downloaded by timm."""
    import timm

    overlay = {"file": str(file)} if file is not None else None
    return timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay)


def _revision(name: str) -> str:
    """The commit that timm downloaded, as its cache names it."""
    try:
        from huggingface_hub import try_to_load_from_cache

        for file in ("model.safetensors", "open_clip_model.safetensors"):
            if isinstance(found := try_to_load_from_cache(f"timm/{name}", file), str):
                return Path(found).parent.name
    except ImportError:
        return ""
    return ""


def _keep_timm_model(name: str, model: Any, licence: str, source: str, revision: str, root: Path | None) -> Weights:
    from safetensors.torch import save_file

    config, known = model.pretrained_cfg, KNOWN.get(name)
    expected = {"size": config["input_size"][-1], "mean": list(config["mean"]), "std": list(config["std"])}
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "weights.safetensors"
        save_file(state, file, {"backbone": json.dumps({"timm": name, "input": expected}, sort_keys=True)})
        manifest = WeightsManifest(
            name=name,
            sha256=file_sha256(file),
            size_bytes=file.stat().st_size,
            parameters=sum(value.numel() for value in state.values()),
            licence=licence,
            source=source,
            revision=revision,
            remark=known.remark if known else "",
            pretraining=known.pretraining if known else None,
        )
        return keep(file, manifest, root)
