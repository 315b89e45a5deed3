"""Rewards of task paths at the least cost: every (state, task) pair is learned once, however often it is asked for.

The decisions of a search depend on rewards only, and rewards are in the journal. A resumed search therefore runs from
the start, finds what was learned before in the journal, and comes to the same decisions without learning it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from suite.errors import StoreError, UsageError
from suite.metrics import AccuracyCounts
from suite.sequences.environment import Hits, Part, Path, SearchLearner, state_name
from suite.sequences.journal import Journal, Record
from suite.sequences.rewards import group_reward, learner_reward


@dataclass
class Ledger:
    """What a search has cost. The first four are the same for a resumed and for an undisturbed search."""

    pairs: int = 0
    """(state, task) pairs of the whole group whose reward was asked for."""
    learn_calls: int = 0
    """Pairs times learners."""
    naive_learn_calls: int = 0
    """Learn calls if each of these paths were learned from its first task on, by each learner."""
    peak_states: int = 0
    """Most states of all learners stored at once."""
    learned: int = 0
    """Learn calls made by this process for a new pair."""
    relearned: int = 0
    """Learn calls made again because a state, though not its scores, was gone."""
    reused: int = 0
    """Pairs of one learner found in the journal."""
    embedded_classes: int = 0
    learn_seconds: float = 0.0


Observer = Callable[[Ledger], None]


def _ignore(_: Ledger) -> None:
    return None


class Explorer:
    """Learns, scores and embeds for a group of learners; keeps the states that the search asks to keep.

    Raises UsageError when two learners share a fingerprint: they would share their states.
    """

    def __init__(self, learners: Sequence[SearchLearner], journal: Journal, observe: Observer = _ignore) -> None:
        self._fingerprints = [learner.fingerprint for learner in learners]
        if len(set(self._fingerprints)) != len(learners):
            raise UsageError("Two learners of the search are identical.", "Name each of them once.")
        self.learners = tuple(learners)
        self.ledger = Ledger()
        self._journal = journal
        self._observe = observe
        self._rows: dict[tuple[int, Path], list[Hits]] = {}
        self._rewards: dict[Path, float] = {}
        self._children: dict[Path, list[Path]] = {}
        self._kept: set[Path] = set()

    def reward(self, path: Path) -> float:
        """R(F^{t-1}, T^t) for the last task of `path` (length t >= 1), learned from the state of its prefix."""
        if path not in self._rewards:
            for m in range(len(self.learners)):
                self._row(m, path)
            self._kept.add(path)
            self._rewards[path] = group_reward(self.counts(path))
            self._book(path)
        return self._rewards[path]

    def knows(self, path: Path) -> bool:
        """Whether this search has asked for the reward of `path` before, so that asking again is free."""
        return path in self._rewards

    def learner_rewards(self, path: Path) -> list[float]:
        """AFM - ALA of each learner after `path`."""
        return [learner_reward(counts) for counts in self.counts(path)]

    def counts(self, path: Path) -> list[AccuracyCounts]:
        """Accuracy counts [t, t] of each learner along `path`."""
        return [self._counts(m, path) for m in range(len(self.learners))]

    def children(self, path: Path) -> list[Path]:
        """Paths one task longer than `path` whose reward is known, in the order in which they were learned."""
        return list(self._children.get(path, ()))

    def embed(self, m: int, path: Path, classes: Sequence[int], part: Part, limit: int) -> list[NDArray[Any]]:
        """Features of at most `limit` images per class in the state of learner m after `path`."""
        self._ensure(m, path)
        self.ledger.embedded_classes += len(classes)
        return self.learners[m].embed(self._state(m, path), classes, part, limit)

    def keep_only(self, paths: Collection[Path]) -> None:
        """Keep the states after those of `paths` whose reward is known, and delete all others of the search.

        A state that was deleted before does not come back until it is needed; it is then learned again.
        """
        kept = {path for path in paths if path in self._rewards}
        for path in self._kept - kept:
            for m, learner in enumerate(self.learners):
                learner.discard(self._state(m, path))
        self._kept = kept

    def secure(self, path: Path) -> None:
        """Learn the last task of `path` again where its state was deleted and that of its prefix was not yet.

        To be called before the prefix is given up: later the whole path would have to be learned again. Nothing happens
        where the prefix is gone too, as in a resumed search that is past this step.
        """
        for m, learner in enumerate(self.learners):
            if not learner.has(self._state(m, path)) and learner.has(self._state(m, path[:-1])):
                self._learn(m, path)
                self.ledger.relearned += 1

    def keeps(self, path: Path) -> bool:
        """Whether the states after `path` are kept."""
        return path in self._kept

    def _book(self, path: Path) -> None:
        group, ledger = len(self.learners), self.ledger
        self._children.setdefault(path[:-1], []).append(path)
        ledger.pairs += 1
        ledger.learn_calls += group
        ledger.naive_learn_calls += group * len(path)
        ledger.peak_states = max(ledger.peak_states, group * len(self._kept))
        self._observe(ledger)

    def _counts(self, m: int, path: Path) -> AccuracyCounts:
        rows = [self._row(m, path[: t + 1]) for t in range(len(path))]
        return AccuracyCounts.from_rows([[c for c, _ in row] for row in rows], [[n for _, n in row] for row in rows])

    def _row(self, m: int, path: Path) -> list[Hits]:
        """Hits of learner m on each task of `path` after the whole of it."""
        if (m, path) not in self._rows:
            learner, state = self.learners[m], self._state(m, path)
            key = f"pair/{state}"
            record = self._journal.get(key)
            if record is None:
                seconds = None
                if not learner.has(state):  # it is there if the process died between learning and scoring
                    seconds = self._learn(m, path)
                    self.ledger.learned += 1
                scored = learner.score(state, path)
                record = self._journal.put(key, {"hits": [list(hits) for hits in scored], "seconds": seconds})
            else:
                self.ledger.reused += 1
            self._rows[m, path] = _hits(record, len(path))
        return self._rows[m, path]

    def _state(self, m: int, path: Path) -> str:
        return state_name(self._fingerprints[m], path)

    def _learn(self, m: int, path: Path) -> float:
        self._ensure(m, path[:-1])
        seconds = self.learners[m].learn(self._state(m, path[:-1]), path[-1], self._state(m, path))
        self.ledger.learn_seconds += seconds
        return seconds

    def _ensure(self, m: int, path: Path) -> None:
        """Have the state after `path` stored, learning again from the nearest ancestor that is."""
        learner = self.learners[m]
        missing: list[Path] = []
        while path and not learner.has(self._state(m, path)):
            missing.append(path)
            path = path[:-1]
        for each in reversed(missing):
            self._learn(m, each)
            self.ledger.relearned += 1
        for each in missing[1:]:
            if each not in self._kept:
                learner.discard(self._state(m, each))


def _hits(record: Record, tasks: int) -> list[Hits]:
    try:
        hits = [(int(correct), int(total)) for correct, total in record["hits"]]
    except (KeyError, TypeError, ValueError):
        hits = []
    if len(hits) != tasks:
        raise StoreError("A learned pair in the search journal is malformed.", "Start again with a fresh journal.")
    return hits
