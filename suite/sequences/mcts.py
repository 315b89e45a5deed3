"""Values of candidates by Monte Carlo tree search with UCT, under a budget of learn calls (CLDyB section 3.2).

Learning is deterministic, so a node keeps the best line seen below it rather than a mean, and a subtree that has been
seen whole is not entered again. Learn calls are the cost: a node gets new children only as fast as the root of its
visits (progressive widening), and half of them are those tasks that were rewarding elsewhere in the tree, half are
random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from suite.seeds import Counter, derive_seed
from suite.sequences.environment import Path, Task
from suite.sequences.explorer import Explorer
from suite.sequences.settings import SearchSettings
from suite.sequences.tree import StepTree, Valued


@dataclass
class _Node:
    path: Path
    untried: list[Task]
    children: dict[Task, _Node] = field(default_factory=dict)
    visits: int = 0
    best: float = -math.inf
    line: Path = ()
    seen_whole: bool = False


class _Habits:
    """How rewarding each task has been on average against others at the same depth (all moves as first)."""

    def __init__(self) -> None:
        self._by_depth: dict[int, tuple[float, int]] = {}
        self._by_task: dict[Task, dict[int, tuple[float, int]]] = {}

    def note(self, task: Task, depth: int, reward: float) -> None:
        for sums in (self._by_depth, self._by_task.setdefault(task, {})):
            total, count = sums.get(depth, (0.0, 0))
            sums[depth] = (total + reward, count + 1)

    def surplus(self, task: Task) -> float:
        """Mean reward above that of the depth; 0 for a task never tried."""
        above, tried = 0.0, 0
        for depth, (total, count) in self._by_task.get(task, {}).items():
            all_total, all_count = self._by_depth[depth]
            above += total - count * all_total / all_count
            tried += count
        return above / tried if tried else 0.0


class TreeSearch:
    """One step's search. Its budget counts learn calls of the whole group; what is known and stored is free."""

    def __init__(self, explorer: Explorer, tree: StepTree, settings: SearchSettings, seed: int) -> None:
        self._explorer, self._tree, self._settings = explorer, tree, settings
        self._random = Counter(derive_seed("tree search", seed))
        self._habits = _Habits()
        self._left = settings.learn_calls or 0

    def run(self) -> list[Valued]:
        """R of every candidate; Q, as far as it was found, of those that were followed to the full depth."""
        root = self._node(self._tree.root)
        while root.untried and self._affords(1):
            self._add(root, root.untried[0])
        line = 1 + self._tree.depth
        while not root.seen_whole and self._affords(line - 1):
            self._simulate(root)
        return [self._valued(root.children[task]) for task in self._tree.candidates if task in root.children]

    def _valued(self, node: _Node) -> Valued:
        value = node.best if node.line else None
        return Valued(node.path[-1], self._explorer.reward(node.path), value, node.line)

    def _affords(self, pairs: int) -> bool:
        return pairs * len(self._explorer.learners) <= self._left

    def _node(self, path: Path) -> _Node:
        tasks = self._tree.tasks_after(path) if len(path) < self._tree.horizon else []
        return _Node(path, list(tasks))

    def _add(self, parent: _Node, task: Task) -> _Node:
        path = (*parent.path, task)
        if not self._is_free(path):
            self._left -= len(self._explorer.learners)
        self._habits.note(task, len(parent.path), self._explorer.reward(path))
        parent.untried.remove(task)
        child = parent.children[task] = self._node(path)
        return child

    def _is_free(self, path: Path) -> bool:
        """Whether neither the reward nor, should something be learned after it, the state has to be paid for."""
        leaf = len(path) == self._tree.horizon and len(path) > len(self._tree.root) + 1
        return self._explorer.knows(path) and (leaf or self._explorer.keeps(path))

    def _simulate(self, root: _Node) -> None:
        """Selection, expansion and roll-out down to the full depth, then the update of all nodes on the way."""
        way = [root]
        while len(way[-1].path) < self._tree.horizon and (way[-1].children or way[-1].untried):
            node = way[-1]
            way.append(self._add(node, self._new(node)) if self._widens(node) else self._uct(node))
        end = way[-1].path
        value = 0.0
        for node in reversed(way[1:]):
            value = self._explorer.reward(node.path) + self._settings.discount * value
            node.visits += 1
            node.seen_whole = not node.untried and all(child.seen_whole for child in node.children.values())
            if value > node.best:
                node.best, node.line = value, end
        root.visits += 1
        root.seen_whole = all(child.seen_whole for child in root.children.values())
        self._retain(root)

    def _retain(self, root: _Node) -> None:
        """Delete scored leaf states, except below the candidate that leads: it may take its children along."""
        leader = max(root.children.values(), key=lambda child: child.best)
        kept = [self._tree.root]
        if self._tree.depth or self._settings.temperature > 0:
            kept += [child.path for child in root.children.values()]
        else:
            kept.append(leader.path)
        if self._tree.depth > 1:
            kept += [inner.path for child in root.children.values() for inner in child.children.values()]
        elif self._settings.temperature == 0:
            kept += [leaf.path for leaf in leader.children.values()]
        self._explorer.keep_only(kept)

    def _widens(self, node: _Node) -> bool:
        if not node.untried:
            return False
        open_children = any(not child.seen_whole for child in node.children.values())
        return not open_children or len(node.children) <= math.sqrt(node.visits)

    def _new(self, node: _Node) -> Task:
        if self._random.unit() < 0.5:
            return node.untried[self._random.below(len(node.untried))]
        return max(node.untried, key=self._habits.surplus)

    def _uct(self, node: _Node) -> _Node:
        """The open child of highest scaled value + c sqrt(ln N / n); children without a visit first."""
        children = [child for child in node.children.values() if not child.seen_whole]
        fresh = [child for child in children if not child.visits]
        if fresh:
            return max(fresh, key=lambda child: self._explorer.reward(child.path))
        low, high = min(child.best for child in children), max(child.best for child in children)
        span = (high - low) or 1.0
        weight = self._settings.exploration * math.sqrt(math.log(node.visits + 1))
        return max(children, key=lambda child: (child.best - low) / span + weight / math.sqrt(child.visits))
