"""`suite submit`, put together: track, data, sandbox, journal, slots. The one place that knows all the parts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from suite import __version__
from suite.data import DataSet, data_root, registry
from suite.errors import UsageError
from suite.evaluation.bench import Bench, Stop
from suite.evaluation.devices import choose_gpus
from suite.evaluation.events import NewRun, Prepared, Report
from suite.evaluation.reserve import reserve_disk
from suite.evaluation.run import Run, changed_inputs, run_submission
from suite.evaluation.sandboxes import sandbox_name
from suite.execution import Slot, plan_slots
from suite.protocol import PROTOCOL_VERSION, Backbone, Device, Point
from suite.provenance import cpu_model, gpu_driver, gpus, memory_bytes, package_versions, source_revision, usable_cpus
from suite.sandbox import Identity, Inside, Isolation, Launch, Limits, Sandbox, Spares, open_sandbox
from suite.store import Journal, dead_runs, merge_run, run_directories, run_directory
from suite.store.records import Entry, Machine, RunInfo, RunLock
from suite.submissions import read_submissions, slug_of_image
from suite.tracks import Budgets, Track, load_track
from suite.weights import Weights, find

RUN_LABEL = "continual-suite.run"
_POINT: TypeAdapter[Point] = TypeAdapter(Point)
_OUTPUT_SLACK = 64 << 20
"""Room beyond the state for scores and for the state that is just too large, so that it is named as such."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    image: str
    track: str
    results: Path
    data_root: Path | None = None
    submission: str | None = None
    submissions: Path | None = None
    """Folder of manifests: the one that names the image gives its slug."""
    sandbox: str = "docker"
    device: str = "auto"
    slots: int = 1
    hyperparameters: Path | None = None
    keep_states: bool = False
    argv: Sequence[str] = ()
    retry_seconds: float = 5.0
    """Pause before a trial is tried again after the machine failed."""


def submit_image(request: Request, report: Report, stop: Stop | None = None, sandbox: Sandbox | None = None) -> Entry:
    """Run a submission from where it was left; returns its entry. `sandbox` takes the place of the one asked for.

    Raises a SuiteError for everything that the user can mend; the journal then holds all that was done.
    """
    track = load_track(request.track)
    data = _load_data(track, data_root(request.data_root), report)
    weights = find(track.backbone.name) if track.backbone else None
    with sandbox or open_sandbox(sandbox_name(request.sandbox)) as sandbox:
        identity = sandbox.identify(request.image)
        device, gpu_ids = choose_gpus(request.device, [uuid for uuid, _ in gpus()])
        point = read_hyperparameters(request.hyperparameters, identity) if request.hyperparameters else None
        lock = _lock(request, track, data, weights, sandbox, identity, device, point)
        slots = plan_slots(request.slots, track.budgets.cpus, usable_cpus(), gpu_ids)
        journal = Journal(run_directory(request.results, lock.id), keep_states=request.keep_states)
        with journal.lock():
            report(NewRun(lock.id, _why_new(request.results, lock)))
            journal.begin(_info(request, lock))
            dead = dead_runs(request.results) | {lock.id}  # an earlier process of this very run may have been killed
            sandbox.reap(lambda labels: labels.get(RUN_LABEL) in dead)
            reserve_disk(journal.directory, track, len(slots), keep_states=request.keep_states)
            with _benches(track, identity, data, weights, journal, sandbox, lock, report, stop or Stop()) as bench:
                run = Run(
                    track=track,
                    lock=lock,
                    journal=journal,
                    slots=slots,
                    bench=bench,
                    report=report,
                    merge=lambda: merge_run(request.results, journal),
                    retry_seconds=request.retry_seconds,
                )
                return run_submission(run)


@contextmanager
def _benches(
    track: Track,
    identity: Identity,
    data: dict[str, DataSet],
    weights: Weights | None,
    journal: Journal,
    sandbox: Sandbox,
    lock: RunLock,
    report: Report,
    stop: Stop,
) -> Iterator[Callable[[Slot], Bench]]:
    """Makes the bench of each slot once; closes what they hold at the end."""
    made: dict[int, Bench] = {}
    with ExitStack() as stack:

        def bench(slot: Slot) -> Bench:
            if slot.index not in made:
                spares = stack.enter_context(closing(Spares(sandbox, identity.manifest, slot.spare_cpus)))
                made[slot.index] = Bench(
                    track=track,
                    manifest=identity.manifest,
                    launch=launch_of(identity, track.budgets, slot, lock.id, weights),
                    cells=spares,
                    load=data.__getitem__,
                    log=journal,
                    run_key=journal.run_key(),
                    report=report,
                    device=lock.device,
                    backbone=backbone_of(weights, sandbox.isolation),
                    threads=track.budgets.cpus,
                    is_exclusive=slot.is_exclusive,
                    stop=stop,
                )
            return made[slot.index]

        yield bench


def backbone_of(weights: Weights | None, isolation: Isolation) -> Backbone | None:
    """What learners are told of pretrained weights: a name, and where they see the file."""
    if weights is None:
        return None
    folder = Inside().weights if isolation.is_ranked else str(weights.folder)
    return Backbone(name=weights.manifest.name, path=f"{folder}/{weights.path.name}")


def launch_of(identity: Identity, budgets: Budgets, slot: Slot, run: str, weights: Weights | None) -> Launch:
    """How the cells of a slot are started: of the track's budgets only, so that both phases look alike."""
    limits = Limits(
        memory_bytes=budgets.memory_bytes,
        cpus=budgets.cpus,
        pids=budgets.pids,
        scratch_bytes=budgets.scratch_bytes,
        shm_bytes=budgets.shm_bytes,
        output_bytes=budgets.state_bytes + _OUTPUT_SLACK,
        file_bytes=budgets.state_bytes + _OUTPUT_SLACK,
        log_bytes=budgets.log_bytes,
        setup_seconds=budgets.setup_seconds,
    )
    return Launch(
        identity.image,
        limits,
        gpu=slot.gpu,
        cpuset=slot.cpus,
        weights=weights.folder if weights else None,
        labels={RUN_LABEL: run},
    )


def _load_data(track: Track, root: Path, report: Report) -> dict[str, DataSet]:
    """The track's data sets; embedded ones are prepared on the way. Raises DataError saying what to prepare."""
    loaded = {}
    for name in track.data_sets:
        info = registry.describe(name, root)
        if info.kind == "embedded" and not info.prepared:
            registry.prepare(name, root)
            report(Prepared(name))
        loaded[name] = registry.load(name, root)
    return loaded


def _lock(
    request: Request,
    track: Track,
    data: dict[str, DataSet],
    weights: Weights | None,
    sandbox: Sandbox,
    identity: Identity,
    device: Device,
    point: Point | None,
) -> RunLock:
    return RunLock(
        submission=request.submission or _slug(request),
        image=request.image,
        fingerprint=identity.fingerprint,
        manifest=identity.manifest,
        track=track.name,
        track_hash=track.hash,
        track_snapshot=track.model_dump_json(),
        data_hashes={name: data_set.sha256 for name, data_set in data.items()}
        | ({f"weights:{weights.manifest.name}": weights.manifest.sha256} if weights else {}),
        suite_version=__version__,
        protocol=PROTOCOL_VERSION,
        isolation=sandbox.isolation,
        device=device,
        hyperparameters=point,
    )


def _slug(request: Request) -> str:
    """The slug of the manifest that names the image, else one made from the image's name."""
    manifests = read_submissions(request.submissions) if request.submissions else {}
    return next((s for s, m in manifests.items() if m.image == request.image), slug_of_image(request.image))


def _info(request: Request, lock: RunLock) -> RunInfo:
    import platform

    commit, is_dirty = source_revision(Path(__file__).parent)
    models = sorted({model for _, model in gpus()})
    return RunInfo(
        lock=lock,
        machine=Machine(
            cpu=cpu_model(),
            cpus=len(usable_cpus()),
            memory_bytes=memory_bytes(),
            gpu=", ".join(models),
            driver=gpu_driver(),
            kernel=platform.release(),
        ),
        versions=package_versions(),
        argv=list(request.argv),
        source_commit=commit,
        is_dirty=is_dirty,
        started_at=datetime.now(UTC),
    )


def _why_new(results: Path, lock: RunLock) -> str:
    """Which inputs changed since the last run of this submission on this track; '' if none was, or it continues."""
    latest: RunInfo | None = None
    for folder in run_directories(results):
        info = Journal(folder).run()
        if info is None or (info.lock.submission, info.lock.track) != (lock.submission, lock.track):
            continue
        if info.lock == lock:
            return ""
        if latest is None or info.started_at > latest.started_at:
            latest = info
    if latest is None:
        return ""
    return f"a new run, because these inputs changed: {', '.join(changed_inputs(lock, latest.lock))}"


def read_hyperparameters(path: Path, identity: Identity) -> Point:
    """The point in a TOML or JSON file; its names must fit the learner's space, its values may lie outside."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        point = _POINT.validate_python(raw)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Give the path of a TOML or JSON file."
        ) from error
    except (ValueError, ValidationError) as error:
        raise UsageError(f"{path} does not hold hyperparameters.", "Write name = value, one a line.") from error
    identity.manifest.space.check_names(point)
    return point
