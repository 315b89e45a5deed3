"""What a search will cost, by formula, before anything is learned."""

from __future__ import annotations

from dataclasses import dataclass

from suite.sequences.settings import SearchSettings
from suite.sequences.tree import depth_at


@dataclass(frozen=True)
class Plan:
    """Upper bounds: a search learns no more and stores no more than this.

    `naive_learn_calls`: learn calls if the same paths were each learned from their first task on; for MCTS the least
    they can be, for the other strategies what belongs to `learn_calls`. `seconds` is learning alone, one learner at a
    time, and `disk_bytes` the states; both None unless a learn was measured.
    """

    learn_calls: int
    naive_learn_calls: int
    peak_states: int
    seconds: float | None
    disk_bytes: int | None


def plan_search(
    settings: SearchSettings,
    learners: int,
    seconds_per_learn: float | None = None,
    state_bytes: int | None = None,
) -> Plan:
    """Cost of one sequence for `learners` learners, given the mean of a measured learn and the size of its state."""
    steps = [_step(settings, learned, learners) for learned in range(settings.tasks)]
    pairs = sum(count for step in steps for count in step.pairs)
    naive = sum(count * (learned + 1 + d) for learned, step in enumerate(steps) for d, count in enumerate(step.pairs))
    peak = learners * max(step.states for step in steps)
    return Plan(
        learn_calls=learners * pairs,
        naive_learn_calls=learners * naive,
        peak_states=peak,
        seconds=None if seconds_per_learn is None else seconds_per_learn * learners * pairs,
        disk_bytes=None if state_bytes is None else state_bytes * peak,
    )


@dataclass(frozen=True)
class _StepCost:
    """Pairs learned at each depth below the root of a step (the candidates first), and states stored per learner."""

    pairs: tuple[int, ...]
    states: int


def _step(settings: SearchSettings, learned: int, learners: int) -> _StepCost:
    if settings.strategy == "random":
        return _StepCost((), 0)
    if learned == 0:
        return _StepCost((1,), 1)
    if settings.strategy == "similar":
        return _StepCost((1,), 2)
    return _mcts_step(settings, learned, learners) if settings.method == "mcts" else _exhaustive_step(settings, learned)


def _fan_out(settings: SearchSettings) -> tuple[int, int]:
    """Most next tasks of a candidate and of its child. Without a limit: the other candidates, but at least one."""
    if settings.children is not None:
        return settings.children, settings.children
    return max(1, settings.n_candidates - 1), max(1, settings.n_candidates - 2)


def _carried(settings: SearchSettings, learned: int) -> int:
    """Least number of candidates that were scored as children of the previous choice."""
    looked = learned > 1 and depth_at(settings, learned - 1) > 0
    certain = settings.method == "exhaustive" and settings.temperature == 0
    return min(settings.carry, settings.children or 1) if looked and certain else 0


def _exhaustive_step(settings: SearchSettings, learned: int) -> _StepCost:
    depth, candidates = depth_at(settings, learned), settings.n_candidates
    first, second = _fan_out(settings)
    expanded = min(settings.expand or candidates, candidates)
    drawn = settings.temperature > 0
    pairs = (candidates - _carried(settings, learned), expanded * first, expanded * first * second)[: depth + 1]
    if drawn:
        return _StepCost(pairs, 1 + candidates + depth)
    waiting = expanded if depth else 1
    stored_before = first if settings.look_ahead else 0  # children of the last choice that are candidates now
    scored = 1 + min(candidates, waiting + 1 + stored_before)
    ahead = 1 + expanded + (2 if expanded > 1 else 1) * first + (depth > 1) if depth else 0
    return _StepCost(pairs, max(scored, ahead))


def _mcts_step(settings: SearchSettings, learned: int, learners: int) -> _StepCost:
    depth, candidates = depth_at(settings, learned), settings.n_candidates
    least = settings.children or 1
    first, second = max(least, candidates - 1), max(least, candidates - 2)
    whole = candidates * (1, 1 + first, 1 + first * (1 + second))[depth]
    budget = min((settings.learn_calls or 0) // learners, whole)
    pairs = (min(candidates, budget), max(0, budget - candidates))[: depth + 1]
    free = candidates  # candidates whose reward is known from before are stored without being paid for
    most = (candidates, candidates + first + 1, budget + free)[depth]
    return _StepCost(pairs, 1 + min(budget + free, most))
