"""The accuracy table of the from-scratch reference learners, on a fixed small track of real images.

    tools/accuracy_table.py run   --out runs/accuracy [--seeds 3] [--epochs 8] [METHOD ...]
    tools/accuracy_table.py table --out runs/accuracy

`run` does in-process trials: 50 classes of CIFAR-100 from the folder that SUITE_ARCHIVES names, in 10 tasks of 5 (or as
`--scenario` says), the same settings for every method, each method's own constants. A trial that is done is a file and
is not run again, so that the command can be repeated, and several can run side by side (`--shard 0/2`, `--shard 1/2`).
`table` writes table.md, table.csv and relations.md beside them. Reduced epochs and images: these figures compare the
methods with each other, never with published ones.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "containers" / "reference"))

CONSTANTS: dict[str, dict[str, Any]] = {
    "lwf": {"temperature": 2, "lambda_kd": 3},
    "mas": {"lambda_mas": 1},
    "mas_exemplars": {"lambda_mas": 1},
    "icarl": {"temperature": 2, "lambda_aux": 1},
    "bic": {"temperature": 2, "lambda_kd": 0, "split_ratio": 0.1},
    "wa": {"temperature": 2, "lambda_kd": 0},
    "lucir": {"lambda_base": 5, "margin": 0.5},
    "podnet": {"lambda_c": 5, "lambda_f": 1, "num_proxy": 10, "post_ft_lr": 0.005, "adaptive_factor": True},
    "afc": {"lambda_c": 4},
    "ssil": {"temperature": 2},
    "der": {"lambda_aux": 1},
    "foster": {"temperature": 2, "lambda_kd": 1, "lambda_fe": 1, "beta1": 0.96, "beta2": 0.97},
    "beef": {"energy_weight": 0.01, "logit_alignment": 1.7},
    "memo": {"lambda_aux": 1, "exemplar_batch_size": 64},
}
"""The originals (GTEP appendix A.1, and the official codes where that has none)."""

SECOND_STAGE = {"podnet": 20 / 160, "afc": 20 / 160, "foster": 130 / 170, "beef": 60 / 170}
"""Epochs of the second stage, as a share of the first's, in the originals."""

ABOVE: list[tuple[str, str, str]] = [
    *[("joint", other, "Joint is the upper bound") for other in ("der", "foster", "memo", "wa", "bic", "replay")],
    *[
        (method, "ft", "exemplars beat plain fine-tuning")
        for method in (
            "replay", "ft_exemplars", "mas_exemplars", "icarl", "bic", "wa", "lucir", "podnet", "ssil", "afc",
            "der", "foster", "beef", "memo",
        )
    ],
    *[(new, old, "expansion beats regularisation") for new in ("der", "foster", "memo") for old in ("icarl", "podnet")],
    ("wa", "icarl", "corrected classifiers beat iCaRL"),
    ("bic", "icarl", "corrected classifiers beat iCaRL"),
    ("ft_exemplars", "mas_exemplars", "MAS with exemplars is not above FT with exemplars"),
]  # fmt: skip
"""Relations the papers stress: (better, worse, why)."""


@dataclass(frozen=True)
class Settings:
    """What all trials share; a folder of results holds one of these."""

    scenario: str = "5+5x9"
    classes: int = 50
    images: int = 200
    exemplars: int = 500
    epochs: int = 8
    batch_size: int = 32
    lr: float = 0.1
    weight_decay: float = 5e-4
    scheduler: str = "cosine"

    @property
    def sizes(self) -> list[int]:
        """Classes per task: "5+5x9" is a first task of 5 and nine more of 5."""
        base, _, rest = self.scenario.partition("+")
        size, _, times = rest.partition("x")
        return [int(base)] + [int(size)] * int(times)


def read_archive(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [classes, n, 32, 32, 3] to train and to test on: the first classes in alphabetical order."""
    from PIL import Image

    archives = os.environ.get("SUITE_ARCHIVES")
    if not archives or not (path := Path(archives) / "cifar100.zip").is_file():
        sys.exit("Set SUITE_ARCHIVES to the folder that holds cifar100.zip.")

    def decoded(data: bytes) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    with zipfile.ZipFile(path) as archive:
        names = sorted(archive.namelist())

        def split(kind: str, most: int) -> np.ndarray:
            files: dict[str, list[str]] = {}
            for name in names:
                parts = name.split("/")
                if len(parts) == 3 and parts[0] == kind and parts[2]:
                    files.setdefault(parts[1], []).append(name)
            chosen = [files[c][:most] for c in sorted(files)[: settings.classes]]
            return np.asarray([[decoded(archive.read(name)) for name in of_class] for of_class in chosen], np.uint8)

        return split("train", settings.images), split("test", settings.images)


def cached(out: Path, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The arrays, decoded once."""
    paths = out / "train.npy", out / "test.npy"
    if not all(p.is_file() for p in paths):
        for path, array in zip(paths, read_archive(settings), strict=True):
            partial = path.with_suffix(f".{os.getpid()}.npy")
            np.save(partial, array)
            partial.replace(path)
    train, test = (np.load(p, mmap_mode="r") for p in paths)
    return train, test


def point(slug: str, settings: Settings) -> dict[str, Any]:
    """The hyperparameters of a method."""
    from reference.catalogue import SCRATCH

    from suite.sdk.server import load_class

    values: dict[str, Any] = {
        "epochs": settings.epochs,
        "lr": settings.lr,
        "scheduler": settings.scheduler,
        "num_milestones": 2,
        "lr_decay": 0.1,
        "batch_size": settings.batch_size,
        "weight_decay": settings.weight_decay,
    }
    for name, dimension in load_class(SCRATCH[slug]).space.root.items():
        if name not in values:
            values[name] = dimension.at(0.0)
    values |= CONSTANTS.get(slug, {})
    if slug in SECOND_STAGE:
        values["post_ft_epochs"] = max(1, round(settings.epochs * SECOND_STAGE[slug]))
    return values


def run_trial(
    slug: str, seed: int, settings: Settings, data: tuple[np.ndarray, np.ndarray], device: str
) -> dict[str, Any]:
    """One trial: counts after each task by the method's own head and by the nearest mean, seconds, sizes."""
    from reference.catalogue import SCRATCH

    from suite.protocol.messages import ExemplarBudget, ImageShape, SetupParams
    from suite.sdk import Context, DivergedError, Task
    from suite.sdk.seeding import call_seed, reseed
    from suite.sdk.server import load_class
    from suite.seeds import derive_seed, shuffled

    found = load_class(SCRATCH[slug])
    learner_seed = derive_seed("accuracy-table", seed, "learner") % 2**31
    setup = SetupParams(
        device=device,  # type: ignore[arg-type]
        threads=int(os.environ.get("OMP_NUM_THREADS", "1")),
        image=ImageShape(height=32, width=32),
        hyperparameters=point(slug, settings),
        learner_seed=learner_seed,
        exemplars=ExemplarBudget(total=settings.exemplars),
    )
    reseed(call_seed(learner_seed, 0, "setup"))
    model: Any = found(Context(setup))
    model.setup()
    order = shuffled(list(range(settings.classes)), derive_seed("accuracy-table", seed))
    train, test = data
    bounds = np.cumsum([0, *settings.sizes])
    result: dict[str, Any] = {"method": slug, "seed": seed, "status": "ok"}
    result |= {"own": [], "nearest_mean": [], "seconds": [], "parameters": []}
    own_head = model.options.get("head")
    for t in range(len(settings.sizes)):
        start, end = int(bounds[t]), int(bounds[t + 1])

        def images_of(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            images = np.concatenate([train[order[c]] for c in range(first, last)])
            return images, np.repeat(np.arange(first, last, dtype=np.int64), train.shape[1])

        past = images_of(0, start) if "past_data" in found.privileges and t else (None, None)
        task = Task(t, list(range(start, end)), *images_of(start, end), *past)
        reseed(call_seed(learner_seed, t, "learn"))
        began = time.process_time()
        try:
            model.learn(task)
        except DivergedError as error:
            return result | {"status": "diverged", "note": str(error)}
        result["seconds"].append(time.process_time() - began)
        report = model.report()
        result["parameters"].append([report.stored_parameters, int(report.metrics["network_parameters"])])
        result["exemplars"] = sum(report.exemplars.values())
        items = np.concatenate([test[order[c]] for c in range(end)])
        scores = {"own": model.predict(items)}
        if len(model.memory):
            scores["nearest_mean"] = nearest_mean_scores(model, items, own_head)
        for kind, values in scores.items():
            right = (values.argmax(1) == np.repeat(np.arange(end), test.shape[1])).reshape(end, -1).sum(1)
            result[kind].append([int(right[bounds[k] : bounds[k + 1]].sum()) for k in range(t + 1)])
        acc = sum(result["own"][-1]) / len(items)
        print(f"{slug} seed {seed} task {t + 1}: {100 * acc:.1f} %, {sum(result['seconds']):.0f} CPU s", flush=True)
    result["held_out"] = [int(n) * int(test.shape[1]) for n in settings.sizes]
    return result


def nearest_mean_scores(model: Any, items: np.ndarray, own_head: str | None) -> np.ndarray:
    """What the nearest mean of exemplars says, whatever head the method's own scores come from."""
    if own_head == "nme":
        return np.asarray(model.predict(items))
    means, model.means = model.means, model.exemplar_means()
    try:
        return np.asarray(model.nearest_means(model.normalised(items)))
    finally:
        model.means = means


def run(arguments: argparse.Namespace) -> None:
    """Every trial that has no file yet."""
    from reference.catalogue import SCRATCH

    out: Path = arguments.out
    (out / "trials").mkdir(parents=True, exist_ok=True)
    settings = Settings(**{name: getattr(arguments, name) for name in asdict(Settings())})
    if sum(settings.sizes) != settings.classes:
        sys.exit(f"{settings.scenario} has {sum(settings.sizes)} classes, not {settings.classes}.")
    file = out / "settings.json"
    if file.exists() and json.loads(file.read_text()) != asdict(settings):
        sys.exit(f"{out} holds results of other settings; give another --out.")
    file.write_text(json.dumps(asdict(settings), indent=1))
    data = cached(out, settings)
    part, parts = map(int, arguments.shard.split("/"))
    trials = [(slug, s) for s in range(arguments.seeds) for slug in arguments.methods or sorted(SCRATCH)]
    for slug, seed in trials[part::parts]:
        path = out / "trials" / f"{slug}-{seed}.json"
        if path.exists():
            continue
        result = run_trial(slug, seed, settings, data, arguments.device)
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(result))
        partial.replace(path)


# --- table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A method's summary over seeds; accuracies in percent."""

    method: str
    seeds: int
    failed: int
    acc: list[float]
    avg_acc: list[float]
    nearest_mean: list[float]
    forgetting: list[float]
    exemplars: int
    stored: int
    network: int
    cpu_seconds: float


def summarise(trials: list[dict[str, Any]]) -> Row:
    """From the trials of one method."""
    from suite.metrics.counts import AccuracyCounts, afm, avg_acc, final_acc

    done = [t for t in sorted(trials, key=lambda t: t["seed"]) if t["status"] == "ok"]

    def counts(trial: dict[str, Any], kind: str) -> AccuracyCounts:
        return AccuracyCounts.from_rows(trial[kind], [trial["held_out"][: i + 1] for i in range(len(trial[kind]))])

    own = [counts(t, "own") for t in done]
    nearest = [100 * final_acc(counts(t, "nearest_mean")) for t in done if t["nearest_mean"]]
    return Row(
        method=trials[0]["method"],
        seeds=len(done),
        failed=len(trials) - len(done),
        acc=[100 * final_acc(c) for c in own],
        avg_acc=[100 * avg_acc(c) for c in own],
        nearest_mean=nearest,
        forgetting=[100 * float(afm(c)[-1]) for c in own],
        exemplars=done[0]["exemplars"] if done else 0,
        stored=done[0]["parameters"][-1][0] if done else 0,
        network=done[0]["parameters"][-1][1] if done else 0,
        cpu_seconds=float(np.mean([sum(t["seconds"]) for t in done])) if done else 0.0,
    )


def spread(values: list[float]) -> str:
    """Mean and standard deviation (ddof 1)."""
    if not values:
        return "-"
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


def verdict(better: Row, worse: Row) -> tuple[str, str]:
    """seen / not seen / not decidable: the paired difference against twice its standard error (same class orders)."""
    n = min(len(better.acc), len(worse.acc))
    difference = np.asarray(better.acc[:n]) - np.asarray(worse.acc[:n])
    if n < 2:
        return "not decidable", f"{n} seed"
    error = float(difference.std(ddof=1) / np.sqrt(n))
    text = f"{difference.mean():+.1f} ± {error:.1f}"
    if abs(difference.mean()) <= 2 * error:
        return "not decidable", text
    return ("seen" if difference.mean() > 0 else "not seen"), text


def tabulate(arguments: argparse.Namespace) -> None:
    """Write the three files and print the table."""
    out: Path = arguments.out
    settings = Settings(**json.loads((out / "settings.json").read_text()))
    trials: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((out / "trials").glob("*.json")):
        trial = json.loads(path.read_text())
        trials.setdefault(trial["method"], []).append(trial)
    rows = {slug: summarise(found) for slug, found in trials.items()}
    ranked = sorted(rows.values(), key=lambda r: -np.mean(r.acc) if r.acc else 0)
    head = ["method", "Acc", "AvgAcc", "Acc by nearest mean", "forgetting", "exemplars"]
    head += ["numbers stored", "network parameters", "CPU s", "seeds"]
    lines = [
        f"{settings.classes} classes of CIFAR-100, {settings.images} training images each, {settings.scenario}; "
        f"{settings.epochs} epochs, batch {settings.batch_size}, rate {settings.lr}, {settings.scheduler}, "
        f"weight decay {settings.weight_decay}, {settings.exemplars} exemplars. Reduced: not comparable with published "
        "values.\n",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for r in ranked:
        cells = [r.method, spread(r.acc), spread(r.avg_acc), spread(r.nearest_mean), spread(r.forgetting)]
        cells += [str(r.exemplars), f"{r.stored:,}", f"{r.network:,}", f"{r.cpu_seconds:.0f}"]
        cells += [f"{r.seeds}" + (f" ({r.failed} failed)" if r.failed else "")]
        lines.append("| " + " | ".join(cells) + " |")
    (out / "table.md").write_text("\n".join(lines) + "\n")
    with (out / "table.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        columns = ["acc", "avg_acc", "nearest_mean", "forgetting"]
        writer.writerow(["method", "seed", *columns, "stored", "network", "cpu_seconds"])
        for r in ranked:
            for s in range(r.seeds):
                values = [found[s] if (found := getattr(r, name)) else "" for name in columns]
                writer.writerow([r.method, s, *values, r.stored, r.network, r.cpu_seconds])
    relations = ["| expected above | below | why | difference | verdict |", "|---|---|---|---|---|"]
    for better, worse, why in ABOVE:
        if better in rows and worse in rows:
            seen, text = verdict(rows[better], rows[worse])
            relations.append(f"| {better} | {worse} | {why} | {text} | {seen} |")
    (out / "relations.md").write_text("\n".join(relations) + "\n")
    print("\n".join([*lines, "", *relations]))


def main() -> None:
    """Parse and go."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("methods", nargs="*")
    runner.add_argument("--seeds", type=int, default=3)
    runner.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    runner.add_argument("--shard", default="0/1", help="this process's part of all trials")
    for name, value in asdict(Settings()).items():
        runner.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    runner.set_defaults(command=run)
    tabler = commands.add_parser("table")
    tabler.set_defaults(command=tabulate)
    for command in (runner, tabler):
        command.add_argument("--out", type=Path, default=Path("runs/accuracy"))
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
