"""The CLDyB pipeline: one task after the other, each the choice of a search among candidates of the present states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from suite.errors import StoreError, UsageError
from suite.metrics import AccuracyCounts
from suite.seeds import content_hash, derive_seed
from suite.sequences.ablations import random_path, random_task
from suite.sequences.candidates import StageA
from suite.sequences.environment import Path, SearchLearner, Task
from suite.sequences.explorer import Explorer, Ledger, Observer
from suite.sequences.journal import Journal
from suite.sequences.mcts import TreeSearch
from suite.sequences.search import choose, evaluate_exhaustively
from suite.sequences.settings import SearchSettings
from suite.sequences.tree import StepTree, Valued, depth_at

FORMAT = 1
"""Goes up when a change of the code makes the search decide differently: older journals are not continued then."""


@dataclass(frozen=True)
class PoolView:
    """The pool as the search sees it: a content hash, and the data set of each class by class number."""

    hash: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """One path that was evaluated: its last task, the reward of the group and of each learner, and what came after."""

    task: Task
    reward: float
    learner_rewards: list[float]
    ahead: list[Look] = field(default_factory=list)


@dataclass(frozen=True)
class Candidate:
    """A candidate of a step. `look` is None when it was not learned, `value` (Q) when it was not evaluated in full."""

    task: Task
    carried: bool
    look: Look | None = None
    value: float | None = None


@dataclass(frozen=True)
class Step:
    """The candidates of a step and the position of the chosen one."""

    candidates: list[Candidate]
    chosen: int


@dataclass(frozen=True)
class Outcome:
    """A sequence, how it was found, and the accuracy counts of each learner along it (none for random sequences)."""

    path: Path
    steps: list[Step]
    counts: list[AccuracyCounts]
    ledger: Ledger


def first_task(pool: PoolView, classes_per_task: int, seed: int) -> Task:
    """The first task: random, and the same for one seed whatever the strategy (appendix B.3)."""
    return random_task(range(len(pool.sources)), classes_per_task, derive_seed("first task", pool.hash, seed))


def generate(
    pool: PoolView,
    learners: Sequence[SearchLearner],
    settings: SearchSettings,
    seed: int,
    journal: Journal,
    observe: Observer | None = None,
) -> Outcome:
    """Find a sequence of `settings.tasks` tasks; called again with the same journal it continues where it was stopped.

    `observe` is called after every (state, task) pair. The states of the last step stay with the learners. UsageError
    when pool, learners or budget do not suffice; StoreError when the journal belongs to something else.
    """
    _check(pool, learners, settings)
    if settings.strategy == "random":
        return _random_sequence(pool, settings, seed)
    explorer = Explorer(learners, journal, observe) if observe else Explorer(learners, journal)
    return _Run(pool, explorer, settings, seed, journal).outcome()


def search_identity(
    pool: PoolView, learners: Sequence[SearchLearner], settings: SearchSettings, seed: int
) -> dict[str, object]:
    """What a search is locked by: equal identities give equal sequences."""
    fingerprints = [learner.fingerprint for learner in learners]
    return {
        "format": FORMAT,
        "pool": pool.hash,
        "learners": fingerprints,
        "settings": settings.model_dump(),
        "seed": seed,
    }


def _check(pool: PoolView, learners: Sequence[SearchLearner], settings: SearchSettings) -> None:
    needed = settings.tasks * settings.classes_per_task
    if needed > len(pool.sources):
        message = f"{settings.tasks} tasks of {settings.classes_per_task} classes need {needed} classes"
        raise UsageError(
            f"{message}; the pool has {len(pool.sources)}.", "Use fewer or smaller tasks, or a larger pool."
        )
    if settings.strategy == "random":
        return
    if not learners:
        raise UsageError("A search needs at least one learner.", "Name one, or use the strategy 'random'.")
    if settings.strategy != "similar" and settings.learn_calls is not None:
        lines = settings.n_candidates if settings.temperature > 0 else 1
        least = (settings.n_candidates + lines * settings.look_ahead) * len(learners)
        if settings.learn_calls < least:
            message = f"A budget of {settings.learn_calls} learn calls per step cannot value the candidates."
            raise UsageError(message, f"Allow at least {least}, or ask for fewer candidates.")


def _random_sequence(pool: PoolView, settings: SearchSettings, seed: int) -> Outcome:
    first = first_task(pool, settings.classes_per_task, seed)
    path = random_path(first, len(pool.sources), settings.tasks, derive_seed(pool.hash, seed))
    return Outcome(path, [Step([Candidate(task, carried=False)], 0) for task in path], [], Ledger())


class _Run:
    def __init__(
        self, pool: PoolView, explorer: Explorer, settings: SearchSettings, seed: int, journal: Journal
    ) -> None:
        self._pool, self._explorer, self._settings, self._seed, self._journal = pool, explorer, settings, seed, journal
        self._stage_a = StageA(explorer, pool.sources, settings, seed)
        identity = search_identity(pool, explorer.learners, settings, seed)
        self._name = content_hash(identity)
        self._journal.put(f"search/{self._name}", identity)
        self._carried: list[Task] = []

    def outcome(self) -> Outcome:
        first = first_task(self._pool, self._settings.classes_per_task, self._seed)
        path: Path = (first,)
        self._explorer.reward(path)
        steps = [Step([self._candidate(path, carried=False)], 0)]
        self._explorer.keep_only([path])
        while len(path) < self._settings.tasks:
            step = self._similar(path) if self._settings.strategy == "similar" else self._searched(path)
            path = (*path, step.candidates[step.chosen].task)
            self._explorer.secure(path)
            self._carry(path)
            steps.append(step)
        return Outcome(path, steps, self._explorer.counts(path), self._explorer.ledger)

    def _searched(self, root: Path) -> Step:
        settings = self._settings
        fresh = self._proposed(root, settings.n_candidates - len(self._carried))
        tree = StepTree(
            root=root,
            candidates=(*self._carried, *fresh),
            depth=depth_at(settings, len(root)),
            children=settings.children,
            fresh=lambda path, wanted: self._topped_up(root, path, wanted),
        )
        self._explorer.keep_only(
            [root, *[path for task in tree.candidates if self._explorer.keeps(path := (*root, task))]]
        )
        step_seed = derive_seed("step", self._seed, len(root))
        if settings.method == "mcts":
            valued = TreeSearch(self._explorer, tree, settings, step_seed).run()
        else:
            valued = evaluate_exhaustively(self._explorer, tree, settings)
        chosen = choose([each.value for each in valued], settings.temperature, step_seed)
        carried = set(self._carried)
        candidates = [self._candidate((*root, each.task), each.task in carried, each) for each in valued]
        return Step(candidates, chosen)

    def _similar(self, root: Path) -> Step:
        tasks = self._proposed(root, self._settings.n_candidates)
        record = self._journal.get(self._key("similar", root))
        if record is None:
            chosen = self._stage_a.most_similar(root, tasks)
            record = self._journal.put(self._key("similar", root), {"chosen": chosen})
        chosen = int(record["chosen"])
        self._explorer.reward((*root, tasks[chosen]))
        looks = [self._look((*root, task)) if i == chosen else None for i, task in enumerate(tasks)]
        return Step([Candidate(task, False, look) for task, look in zip(tasks, looks, strict=True)], chosen)

    def _carry(self, path: Path) -> None:
        """The hardest of those children of the chosen task that are stored join the next candidates.

        The others stay stored until these are known: they may be among them.
        """
        stored = [child for child in self._explorer.children(path) if self._explorer.keeps(child)]
        hardest = sorted(stored, key=lambda child: -self._explorer.reward(child))[: self._settings.carry]
        self._carried = [child[-1] for child in hardest]
        self._explorer.keep_only([path, *stored])

    def _proposed(self, root: Path, wanted: int) -> list[Task]:
        """Candidates of a step."""
        return self._recorded("candidates", root, lambda: self._stage_a.candidates(root, wanted, self._carried))

    def _topped_up(self, root: Path, path: Path, wanted: int) -> list[Task]:
        """Further tasks for an inner node. It may be the root of the next step, whose candidates are other ones."""
        return self._recorded("inner", path, lambda: self._stage_a.fresh(root, path, wanted))

    def _recorded(self, purpose: str, path: Path, propose: Callable[[], list[Task]]) -> list[Task]:
        """Stage A through the journal: a resumed search neither embeds nor clusters again."""
        key = self._key(purpose, path)
        record = self._journal.get(key) or self._journal.put(key, {"tasks": [list(task) for task in propose()]})
        try:
            return [tuple(int(label) for label in task) for task in record["tasks"]]
        except (KeyError, TypeError, ValueError):
            message = "The candidates of a step in the search journal are malformed."
            raise StoreError(message, "Start again with a fresh journal.") from None

    def _key(self, purpose: str, path: Path) -> str:
        return f"search/{self._name}/{purpose}/{content_hash([list(task) for task in path])}"

    def _candidate(self, path: Path, carried: bool, valued: Valued | None = None) -> Candidate:
        return Candidate(path[-1], carried, self._look(path), valued.value if valued else None)

    def _look(self, path: Path) -> Look:
        ahead = [self._look(child) for child in self._explorer.children(path)]
        return Look(path[-1], self._explorer.reward(path), self._explorer.learner_rewards(path), ahead)
