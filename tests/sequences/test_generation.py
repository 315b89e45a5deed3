"""Whole sequences: every strategy, resumption after interruption, and what the economy saves."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.errors import StoreError, UsageError
from suite.metrics import AccuracyCounts, afm, ala
from suite.sequences.candidates import StageA
from suite.sequences.environment import INITIAL, Path, Task, state_name
from suite.sequences.explorer import Explorer
from suite.sequences.generation import Candidate, Look, Outcome, PoolView, first_task, generate
from suite.sequences.journal import DirectoryJournal, Journal, MemoryJournal
from suite.sequences.plan import plan_search
from suite.sequences.settings import SearchSettings
from suite.sequences.toy import FolderShelf, ToyLearner, random_world

CLASSES = 60
POOL = PoolView("pool", tuple(f"data {label % 4}" for label in range(CLASSES)))
WORLD = random_world(CLASSES, seed=5)
STRATEGIES = ("search", "random", "uniform", "unclustered", "similar")


def learners(count: int = 2) -> list[ToyLearner]:
    return [ToyLearner(random_world(CLASSES, seed), name=f"toy {seed}") for seed in range(count)]


def small(**changes: Any) -> SearchSettings:
    base = {"tasks": 5, "classes_per_task": 3, "n_greedy": 30, "n_clusters": 3, "n_candidates": 6, "carry": 2}
    return SearchSettings.model_validate({**base, **changes})


def decisions(outcome: Outcome) -> tuple[Path, list[Any], int]:
    return outcome.path, outcome.steps, outcome.ledger.learn_calls


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sequence_has_disjoint_tasks_of_the_size_asked_for(strategy: str) -> None:
    outcome = generate(POOL, learners(), small(strategy=strategy), 0, MemoryJournal())
    assert [len(task) for task in outcome.path] == [3] * 5
    assert len({label for task in outcome.path for label in task}) == 15
    assert [step.candidates[step.chosen].task for step in outcome.steps] == list(outcome.path)


def test_the_first_task_depends_on_the_seed_and_on_nothing_else() -> None:
    for seed in (0, 1):
        starts = {
            generate(POOL, learners(1), small(strategy=s, tasks=2), seed, MemoryJournal()).path[0] for s in STRATEGIES
        }
        assert starts == {first_task(POOL, 3, seed)}
    assert first_task(POOL, 3, 0) != first_task(POOL, 3, 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_seed_decides_the_sequence(strategy: str) -> None:
    runs = [generate(POOL, learners(), small(strategy=strategy), seed, MemoryJournal()) for seed in (3, 3, 4)]
    assert decisions(runs[0]) == decisions(runs[1])
    assert runs[0].path != runs[2].path


def test_searched_sequences_are_harder_than_random_ones() -> None:
    def final_reward(outcome: Outcome) -> float:
        explorer = Explorer(learners(), MemoryJournal())
        return [explorer.reward(outcome.path[: t + 1]) for t in range(len(outcome.path))][-1]

    hard = [final_reward(generate(POOL, learners(), small(), seed, MemoryJournal())) for seed in range(4)]
    plain = [final_reward(generate(POOL, [], small(strategy="random"), seed, MemoryJournal())) for seed in range(4)]
    assert min(hard) > max(plain)


def test_random_sequences_need_no_learners() -> None:
    outcome = generate(POOL, [], small(strategy="random"), 0, MemoryJournal())
    assert outcome.counts == []
    assert outcome.ledger.learn_calls == 0


def test_uniform_candidates_stay_within_a_data_set() -> None:
    outcome = generate(POOL, learners(), small(strategy="uniform", look_ahead=0, carry=0), 0, MemoryJournal())
    for step in outcome.steps[1:]:
        for candidate in step.candidates:
            assert len({POOL.sources[label] for label in candidate.task}) == 1


def test_most_similar_sequences_learn_only_what_they_choose() -> None:
    outcome = generate(POOL, learners(), small(strategy="similar"), 0, MemoryJournal())
    assert outcome.ledger.learn_calls == 5 * 2
    assert all(candidate.value is None for step in outcome.steps for candidate in step.candidates)


def test_the_history_holds_the_reward_of_every_pair() -> None:
    outcome = generate(POOL, learners(), small(), 0, MemoryJournal())
    found: dict[Path, float] = {}

    def walk(look: Look, prefix: Path) -> None:
        found[(*prefix, look.task)] = look.reward
        assert look.reward == pytest.approx(sum(look.learner_rewards) / 2)
        for each in look.ahead:
            walk(each, (*prefix, look.task))

    for t, step in enumerate(outcome.steps):
        for candidate in step.candidates:
            assert candidate.look is not None
            walk(candidate.look, outcome.path[:t])
    assert len(found) == outcome.ledger.pairs
    fresh = Explorer(learners(), MemoryJournal())
    for path in sorted(found, key=len):
        for t in range(1, len(path) + 1):
            fresh.reward(path[:t])
        assert fresh.reward(path) == pytest.approx(found[path])


def test_scored_children_of_the_choice_join_the_next_candidates_for_free() -> None:
    outcome = generate(POOL, learners(), small(), 0, MemoryJournal())
    for before, step in itertools.pairwise(outcome.steps[1:]):
        chosen = before.candidates[before.chosen].look
        assert chosen is not None
        hardest = sorted(chosen.ahead, key=lambda look: -look.reward)[:2]
        assert [c.task for c in step.candidates if c.carried] == [look.task for look in hardest]
        assert len(step.candidates) <= 6
    assert outcome.ledger.relearned == 0


def test_candidates_come_from_the_present_states_though_look_ahead_was_topped_up_there() -> None:
    # one candidate per step: every inner node needs a top-up, drawn from the embeddings of the step before
    lonely = small(n_candidates=1, carry=0, children=2, n_clusters=1)
    outcome = generate(POOL, learners(), lonely, 0, MemoryJournal())
    for t, step in enumerate(outcome.steps[1:], start=1):
        assert len(step.candidates) == 1
        explorer = Explorer(learners(), MemoryJournal())
        for end in range(1, t + 1):
            explorer.reward(outcome.path[:end])
        present = StageA(explorer, POOL.sources, lonely, 0).candidates(outcome.path[:t], 1)
        assert [candidate.task for candidate in step.candidates] == present


@pytest.mark.parametrize("look_ahead", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_not_learned_again(look_ahead: int, seed: int) -> None:
    outcome = generate(POOL, learners(), small(look_ahead=look_ahead, expand=None), seed, MemoryJournal())
    assert outcome.ledger.relearned == 0


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_a_temperature_values_every_candidate(temperature: float) -> None:
    easy = small(temperature=temperature, expand=None, look_ahead=1)
    outcome = generate(POOL, learners(), easy, 0, MemoryJournal())
    assert all(candidate.value is not None for step in outcome.steps[1:] for candidate in step.candidates)


@pytest.mark.parametrize(
    "changes",
    [
        {"look_ahead": 0},
        {"look_ahead": 1},
        {"look_ahead": 1, "expand": None},
        {"look_ahead": 1, "carry": 0},
        {"look_ahead": 2, "children": 2, "expand": 2},
        {"look_ahead": 1, "temperature": 0.1, "expand": None},
        {"look_ahead": 1, "method": "mcts", "learn_calls": 40},
        {"look_ahead": 2, "method": "mcts", "learn_calls": 60},
        {"look_ahead": 0, "method": "mcts", "learn_calls": 60},
        {"strategy": "similar"},
        {"strategy": "random"},
    ],
)
def test_a_search_costs_no_more_than_planned(changes: dict[str, Any]) -> None:
    group = learners()
    outcome = generate(POOL, group, small(**changes), 1, MemoryJournal())
    plan = plan_search(small(**changes), 2, seconds_per_learn=1.5, state_bytes=100)
    assert outcome.ledger.learn_calls <= plan.learn_calls
    assert outcome.ledger.peak_states <= plan.peak_states
    assert plan.seconds == 1.5 * plan.learn_calls
    assert plan.disk_bytes == 100 * plan.peak_states
    made = sum(each.learn_calls for each in group)
    assert made == outcome.ledger.learned + outcome.ledger.relearned
    assert made <= plan.learn_calls


@settings(max_examples=25)
@given(st.data())
def test_no_settings_cost_more_than_planned(data: st.DataObject) -> None:
    draw = data.draw
    candidates, drawn = draw(st.integers(1, 6)), draw(st.booleans())
    changes = {
        "strategy": "unclustered",
        "tasks": draw(st.integers(1, 5)),
        "classes_per_task": draw(st.integers(1, 3)),
        "n_candidates": candidates,
        "look_ahead": draw(st.integers(0, 2)),
        "temperature": 0.1 if drawn else 0.0,
        "expand": None if drawn else draw(st.one_of(st.none(), st.integers(1, 7))),
        "children": draw(st.one_of(st.none(), st.integers(1, 4))),
        "carry": draw(st.integers(0, candidates - 1)),
    }
    if draw(st.booleans()):
        changes |= {"method": "mcts", "learn_calls": draw(st.integers(3 * candidates, 80))}
    (learner,) = learners(1)
    plan = plan_search(small(**changes), 1)
    outcome = generate(POOL, [learner], small(**changes), draw(st.integers(0, 9)), MemoryJournal())
    assert outcome.ledger.peak_states <= plan.peak_states
    assert outcome.ledger.learn_calls <= plan.learn_calls
    assert learner.learn_calls <= plan.learn_calls


@pytest.mark.parametrize("look_ahead", [0, 1])
def test_the_plan_is_exact_where_candidates_never_run_out(look_ahead: int) -> None:
    many = small(look_ahead=look_ahead, classes_per_task=1)
    outcome = generate(POOL, learners(), many, 0, MemoryJournal())
    plan = plan_search(many, 2)
    assert (outcome.ledger.learn_calls, outcome.ledger.naive_learn_calls) == (plan.learn_calls, plan.naive_learn_calls)
    assert (plan.seconds, plan.disk_bytes) == (None, None)


def learn_calls_from_scratch(outcome: Outcome, learner: ToyLearner) -> int:
    """Learn every path of the history from its first task on, as a search without states would; check its rewards."""
    seen: set[Path] = set()

    def evaluate(path: Path, look: Look) -> None:
        if path not in seen:
            seen.add(path)
            rows = []
            for t in range(len(path)):
                learner.learn(f"{t - 1}" if t else INITIAL, path[t], f"{t}")
                rows.append(learner.score(f"{t}", path[: t + 1]))
            counts = AccuracyCounts.from_rows([[c for c, _ in row] for row in rows], [[n for _, n in r] for r in rows])
            assert look.reward == pytest.approx(afm(counts)[-1] - ala(counts)[-1])
        for each in look.ahead:
            evaluate((*path, each.task), each)

    for t, step in enumerate(outcome.steps):
        for candidate in step.candidates:
            assert candidate.look is not None
            evaluate((*outcome.path[:t], candidate.task), candidate.look)
    return learner.learn_calls


@pytest.mark.parametrize(("tasks", "times"), [(10, 5), (20, 10)])
def test_states_save_most_of_the_learning(tasks: int, times: int) -> None:
    chosen = small(tasks=tasks, classes_per_task=2, carry=3)
    (learner,) = learners(1)
    outcome = generate(POOL, [learner], chosen, 0, MemoryJournal())
    economical = learner.learn_calls
    naive = learn_calls_from_scratch(outcome, learners(1)[0])
    assert economical == outcome.ledger.learn_calls
    assert naive == outcome.ledger.naive_learn_calls
    assert naive >= times * economical


class _KilledError(Exception):
    pass


class _Fragile(ToyLearner):
    """Dies at a given call of learn or score, sometimes with the work done but not yet told."""

    left = 10**9

    def learn(self, parent: str, task: Task, state: str) -> float:
        self._tick()
        seconds = super().learn(parent, task, state)
        self._tick()
        return seconds

    def score(self, state: str, tasks: Sequence[Task]) -> list[tuple[int, int]]:
        self._tick()
        return super().score(state, tasks)

    def _tick(self) -> None:
        _Fragile.left -= 1
        if _Fragile.left < 0:
            raise _KilledError


@pytest.mark.parametrize("changes", [{}, {"method": "mcts", "learn_calls": 30}, {"temperature": 0.1, "expand": None}])
def test_an_interrupted_search_comes_to_the_same_sequence(changes: dict[str, Any], tmp_path: FilePath) -> None:
    chosen, dice = small(tasks=4, **changes), random.Random(0)
    undisturbed = generate(POOL, learners(), chosen, 2, MemoryJournal())
    journal: Journal = DirectoryJournal(tmp_path / "journal")
    outcome, attempts = None, 0
    while outcome is None:
        attempts += 1
        worlds = [random_world(CLASSES, seed) for seed in range(2)]
        shelf = FolderShelf(tmp_path / "states")
        group = [_Fragile(world, name=f"toy {seed}", states=shelf) for seed, world in enumerate(worlds)]
        _Fragile.left = dice.randint(1, 60)
        try:
            outcome = generate(POOL, group, chosen, 2, journal)
        except _KilledError:
            continue
    assert attempts > 3
    assert decisions(outcome) == decisions(undisturbed)
    assert outcome.counts == undisturbed.counts
    # only the states of the last task are left
    names = {state_name(learner.fingerprint, outcome.path) for learner in group}
    assert {file.name for file in (tmp_path / "states").iterdir()} == names


KILLABLE = """
import pathlib, sys, time
from suite.sequences.generation import PoolView, generate
from suite.sequences.journal import DirectoryJournal
from suite.sequences.settings import SearchSettings
from suite.sequences.toy import FolderShelf, ToyLearner, random_world

class Slow(ToyLearner):
    def learn(self, parent, task, state):
        time.sleep(0.02)
        return super().learn(parent, task, state)

folder = pathlib.Path(sys.argv[1])
pool = PoolView("pool", tuple(f"data {label % 4}" for label in range(60)))
group = [Slow(random_world(60, s), name=f"toy {s}", states=FolderShelf(folder / "states")) for s in range(2)]
settings = SearchSettings(
    strategy="unclustered", tasks=4, classes_per_task=3, n_greedy=30, n_candidates=6, carry=2
)
outcome = generate(pool, group, settings, 2, DirectoryJournal(folder / "journal"))
print(outcome.path, outcome.steps, outcome.ledger.learn_calls)
"""


def test_a_search_killed_at_random_moments_resumes_to_the_same_sequence(tmp_path: FilePath) -> None:
    script = tmp_path / "search.py"
    script.write_text(KILLABLE)
    root = FilePath(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}

    def start(folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(tmp_path / folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    undisturbed, _ = start("undisturbed").communicate(timeout=60)
    dice, killed, output = random.Random(1), 0, ""
    records = tmp_path / "killed" / "journal"
    while not output:
        process = start("killed")
        known = len(list(records.glob("*.json"))) if records.exists() else 0
        target = known + dice.randint(2, 40)
        while process.poll() is None and (not records.exists() or len(list(records.glob("*.json"))) < target):
            time.sleep(0.005)
        if process.poll() is None and killed < 3:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            killed += 1
        else:
            output, _ = process.communicate(timeout=60)
    assert killed >= 2
    assert output == undisturbed


def test_malformed_candidates_in_a_journal_are_reported(tmp_path: FilePath) -> None:
    chosen = small(tasks=2)
    generate(POOL, learners(1), chosen, 0, DirectoryJournal(tmp_path))
    for file in tmp_path.iterdir():
        if "tasks" in json.loads(file.read_text()):
            file.write_text('{"tasks": [["a"]]}')
    with pytest.raises(StoreError, match="malformed"):
        generate(POOL, learners(1), chosen, 0, DirectoryJournal(tmp_path))


def test_a_journal_serves_another_search_of_the_same_learners() -> None:
    journal = MemoryJournal()
    first = generate(POOL, learners(), small(look_ahead=0, carry=0), 0, journal)
    again = generate(POOL, learners(), small(look_ahead=0, carry=0, n_clusters=2), 0, journal)
    assert first.path[0] == again.path[0]
    assert again.ledger.reused >= 2


@pytest.mark.parametrize(
    ("changes", "group", "match"),
    [
        ({"tasks": 30}, 2, "need 90 classes; the pool has 60"),
        ({}, 0, "at least one learner"),
        ({"method": "mcts", "learn_calls": 13}, 2, "cannot value"),
        ({"method": "mcts", "learn_calls": 23, "temperature": 0.1}, 2, "Allow at least 24"),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_before_it_starts(
    changes: dict[str, Any], group: int, match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        generate(POOL, learners(group), small(**changes), 0, MemoryJournal())


def test_a_pool_can_be_used_up() -> None:
    pool = PoolView("pool", tuple("one" for _ in range(12)))
    worlds = [ToyLearner(random_world(12, 0))]
    outcome = generate(pool, worlds, small(tasks=4, look_ahead=2, children=2), 0, MemoryJournal())
    assert sorted(label for task in outcome.path for label in task) == list(range(12))


def test_a_candidate_without_a_look_has_no_value() -> None:
    assert Candidate((1,), carried=False).value is None
