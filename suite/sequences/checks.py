"""Does a sequence file agree with itself and with its pool, and what do two of them have in common?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from suite.metrics import AccuracyCounts
from suite.sequences.files import SequenceFile, StepRecord
from suite.sequences.generation import PoolView, first_task
from suite.sequences.pool import Pool
from suite.sequences.rewards import group_reward

_TOLERANCE = 1e-9


def pool_view(pool: Pool) -> PoolView:
    """The pool as the search sees it."""
    return PoolView(pool.hash, tuple(each.dataset for each in pool.classes))


def verify(file: SequenceFile, pool: Pool | None = None) -> list[str]:
    """What is wrong with a sequence file, one sentence each; empty when nothing is.

    Recomputes what can be: digest, sizes, disjoint classes, choices, rewards of the chosen tasks from the counts; with
    the pool also its hash, the names of classes, and the first task of the seed.
    """
    return [*_self(file), *_choices(file), *_rewards(file), *(_against(file, pool) if pool else ())]


@dataclass(frozen=True)
class Comparison:
    """Two sequences side by side. Shares are of the union (Jaccard); rewards are those of the last task."""

    same_pool: bool
    common_start: int
    """Leading tasks of equal classes."""
    shared_classes: float
    shared_by_step: list[float]
    shared_datasets: float
    final_rewards: tuple[float | None, float | None]
    differing_settings: list[str]


def compare(first: SequenceFile, second: SequenceFile) -> Comparison:
    """Compare two sequence files."""
    pairs = [(set(a), set(b)) for a, b in zip(first.tasks, second.tasks, strict=False)]
    start = next((step for step, (a, b) in enumerate(pairs) if a != b), len(pairs))
    classes = [{name for task in file.tasks for name in task} for file in (first, second)]
    datasets = [{name.split("/", 1)[0] for name in each} for each in classes]
    settings = [file.settings.model_dump() for file in (first, second)]
    return Comparison(
        same_pool=first.pool.hash == second.pool.hash,
        common_start=start,
        shared_classes=_jaccard(*classes),
        shared_by_step=[_jaccard(a, b) for a, b in pairs],
        shared_datasets=_jaccard(*datasets),
        final_rewards=(_final_reward(first), _final_reward(second)),
        differing_settings=[key for key, value in settings[0].items() if settings[1][key] != value],
    )


def _jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _final_reward(file: SequenceFile) -> float | None:
    step = file.steps[-1] if file.steps else None
    look = step.candidates[step.chosen].look if step and step.chosen < len(step.candidates) else None
    return look.reward if look else None


def _self(file: SequenceFile) -> Iterator[str]:
    if file.digest != file.computed_digest:
        yield "The digest does not match: the file was changed after it was written."
    if len(file.tasks) != file.settings.tasks:
        yield f"There are {len(file.tasks)} tasks instead of {file.settings.tasks}."
    for number, task in enumerate(file.tasks, start=1):
        if len(task) != file.settings.classes_per_task:
            yield f"Task {number} has {len(task)} classes instead of {file.settings.classes_per_task}."
    names = [name for task in file.tasks for name in task]
    if len(set(names)) != len(names):
        yield "A class occurs twice."


def _choices(file: SequenceFile) -> Iterator[str]:
    if len(file.steps) != len(file.tasks):
        yield f"There are {len(file.steps)} steps for {len(file.tasks)} tasks."
    for number, (step, task) in enumerate(zip(file.steps, file.tasks, strict=False), start=1):
        if step.chosen >= len(step.candidates) or step.candidates[step.chosen].classes != task:
            yield f"Task {number} is not the candidate that step {number} says was chosen."
        elif file.settings.temperature == 0 and not _is_best(step):
            yield f"Step {number} did not choose the candidate of highest value."


def _is_best(step: StepRecord) -> bool:
    values = [each.value for each in step.candidates if each.value is not None]
    return not values or step.candidates[step.chosen].value == max(values)


def _rewards(file: SequenceFile) -> Iterator[str]:
    if not file.learners:
        return
    try:
        counts = [AccuracyCounts.from_rows(each.correct, each.total) for each in file.learners]
    except ValueError as error:
        yield f"The counts of a learner are malformed: {error}."
        return
    if any(each.tasks != len(file.tasks) for each in counts):
        yield "The counts of a learner are not of as many tasks as the sequence has."
        return
    for number, step in enumerate(file.steps[: len(file.tasks)], start=1):
        look = step.candidates[step.chosen].look if step.chosen < len(step.candidates) else None
        expected = group_reward([each.first(number) for each in counts])
        if look is None or not math.isclose(look.reward, expected, abs_tol=_TOLERANCE):
            yield f"The reward of task {number} does not follow from the counts."


def _against(file: SequenceFile, pool: Pool) -> Iterator[str]:
    if file.pool.hash != pool.hash:
        yield f"The pool is {pool.name} version {pool.version}; the sequence is from another or from other images."
    keys = [each.key for each in pool.classes]
    unknown = sorted({name for task in file.tasks for name in task} - set(keys))
    if unknown:
        yield f"The pool has no class {unknown[0]}{f' and {len(unknown) - 1} more' if unknown[1:] else ''}."
    elif file.pool.hash == pool.hash and file.tasks:
        first = first_task(pool_view(pool), file.settings.classes_per_task, file.seed)
        if file.tasks[0] != [keys[label] for label in first]:
            yield "The first task is not that of the seed."
