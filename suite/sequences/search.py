"""Values of candidates by exhaustive look-ahead (CLDyB eq. 6), and the choice among them (eq. 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from suite.seeds import Counter, derive_seed
from suite.sequences.environment import Path, Task
from suite.sequences.explorer import Explorer
from suite.sequences.settings import SearchSettings
from suite.sequences.tree import StepTree, Valued


def evaluate_exhaustively(explorer: Explorer, tree: StepTree, settings: SearchSettings) -> list[Valued]:
    """Q of every candidate, or of the `expand` candidates of highest immediate reward; None for the others.

    Q(T) = R(T) + discount * max over next tasks of their Q, `tree.depth` tasks deep. While it runs only these states
    are kept: those still to be expanded, the best candidate so far with its direct children, and the branch in work.
    With a temperature any candidate may be chosen, so all of them are kept, but no children.
    """
    drawn = settings.temperature > 0
    limit = None if drawn else (settings.expand if tree.depth else 1)
    candidates = _immediate(explorer, tree, limit)
    if not tree.depth:
        for each in candidates:
            each.value, each.line = each.reward, (*tree.root, each.task)
        return candidates
    pending = [(*tree.root, each.task) for each in _hardest_first(candidates)][:limit]
    by_path = {(*tree.root, each.task): each for each in candidates}
    top = -math.inf
    leader: list[Path] = []  # the best candidate and its direct children
    for position, path in enumerate(pending):
        waiting = pending if drawn else pending[position:]
        branch = _Branch(explorer, tree, settings, [tree.root, *waiting, *leader])
        value, line = branch.best(path)
        by_path[path].value, by_path[path].line = value, line
        if value > top:
            top, leader = value, [] if drawn else [path, *branch.children]
        explorer.keep_only([tree.root, *(pending if drawn else pending[position + 1 :]), *leader])
    return candidates


def choose(values: Sequence[float | None], temperature: float, seed: int) -> int:
    """Position of the next task: p(T) proportional to exp(Q / tau) (eq. 7), the highest Q for tau = 0.

    Candidates without a value are never chosen; the earlier one wins a tie. ValueError when none has a value.
    """
    known = [(position, value) for position, value in enumerate(values) if value is not None]
    if not known:
        raise ValueError("no candidate has a value")
    top = max(value for _, value in known)
    if temperature == 0:
        return next(position for position, value in known if value == top)
    weights = [math.exp((value - top) / temperature) for _, value in known]
    drawn = Counter(derive_seed("choice", seed)).unit() * math.fsum(weights)
    for (position, _), weight in zip(known, weights, strict=True):
        drawn -= weight
        if drawn < 0:
            return position
    return known[-1][0]


def _hardest_first(candidates: Sequence[Valued]) -> list[Valued]:
    return sorted(candidates, key=lambda each: -each.reward)  # stable: the earlier candidate first on a tie


def _immediate(explorer: Explorer, tree: StepTree, limit: int | None) -> list[Valued]:
    """R of every candidate, keeping the states of the `limit` hardest so far and of those still to come."""
    candidates: list[Valued] = []
    for position, task in enumerate(tree.candidates):
        candidates.append(Valued(task, explorer.reward((*tree.root, task))))
        hardest = [each.task for each in _hardest_first(candidates)[:limit]]
        tasks = [*hardest, *tree.candidates[position + 1 :]]
        explorer.keep_only([tree.root, *[(*tree.root, each) for each in tasks]])
    return candidates


class _Branch:
    """The look-ahead below one candidate, depth first; a leaf state is deleted as soon as it is scored.

    `base`: paths whose states are kept meanwhile. `children`: the direct children learned; they are kept as well,
    unless the choice is drawn with a temperature, since the chosen candidate takes its children along.
    """

    def __init__(self, explorer: Explorer, tree: StepTree, settings: SearchSettings, base: Sequence[Path]) -> None:
        self._explorer, self._tree, self._settings, self._base = explorer, tree, settings, base
        self.children: list[Path] = []

    def best(self, path: Path) -> tuple[float, Path]:
        """The highest discounted sum of rewards from the last task of `path` on, and the line that attains it."""
        reward = self._explorer.reward(path)
        self._retain(path)
        following = self._followers(path) if len(path) < self._tree.horizon else []
        if not following:
            return reward, path
        value, line = -math.inf, path
        for task in following:
            below, end = self.best((*path, task))
            if below > value:
                value, line = below, end
        return reward + self._settings.discount * value, line

    def _followers(self, path: Path) -> list[Task]:
        """Next tasks of a node: the first `children` of those whose classes are free, hardest candidates first."""
        root = self._tree.root
        rewards = {task: self._explorer.reward((*root, task)) for task in self._tree.candidates}
        tasks = sorted(self._tree.tasks_after(path), key=lambda task: -rewards.get(task, -math.inf))
        return tasks[: self._settings.children]

    def _retain(self, path: Path) -> None:
        start = len(self._tree.root) + 1
        if len(path) == start + 1 and self._settings.temperature == 0:
            self.children.append(path)
        inner = [path[:n] for n in range(start, min(len(path) + 1, self._tree.horizon))]
        self._explorer.keep_only([*self._base, *self.children, *inner])
