"""Look-ahead against brute force over a formula, a planted optimum, and the choice among values (eq. 6 and 7)."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.sequences.environment import Path, Task
from suite.sequences.explorer import Explorer
from suite.sequences.journal import MemoryJournal
from suite.sequences.mcts import TreeSearch
from suite.sequences.search import choose, evaluate_exhaustively
from suite.sequences.settings import SearchSettings
from suite.sequences.toy import ITEMS, ToyLearner, ToyWorld, random_world
from suite.sequences.tree import StepTree, Valued, depth_at


def nothing_more(path: Path, wanted: int) -> list[Task]:
    return []


def single_class_tree(classes: int, depth: int, root: Path = (), children: int | None = None) -> StepTree:
    """Every class is a task of its own."""
    candidates = tuple((c,) for c in range(classes) if (c,) not in root)
    return StepTree(root, candidates, depth, children, nothing_more)


def settings_of(classes: int, look_ahead: int, **changes: object) -> SearchSettings:
    base = {
        "tasks": 10,
        "classes_per_task": 1,
        "n_candidates": classes,
        "look_ahead": look_ahead,
        "expand": None,
        "children": None,
    }
    return SearchSettings.model_validate({**base, **changes})


def explorer_of(world: ToyWorld) -> Explorer:
    return Explorer([ToyLearner(world)], MemoryJournal())


def reward_by_formula(world: ToyWorld, order: tuple[int, ...]) -> float:
    """AFM - ALA after single-class tasks in this order, straight from the arrays of the world."""

    def accuracy(tested: int, now: int) -> float:
        value = 1 - world.hardness[order[tested]]
        value -= sum(world.blocking[order[i], order[tested]] for i in range(tested))
        value -= sum(world.forgetting[order[tested], order[i]] for i in range(tested + 1, now + 1))
        return round(ITEMS * min(1.0, max(0.0, float(value)))) / ITEMS

    last = len(order) - 1
    forgotten = [accuracy(i, i) - accuracy(i, last) for i in range(last)]
    learned = [accuracy(i, i) for i in range(last + 1)]
    return (sum(forgotten) / last if last else 0.0) - sum(learned) / (last + 1)


def planted_world() -> ToyWorld:
    """Ten classes, equally easy. Learning 1 and 2 after 0, and 2 after 1, destroys; class 9 is a trap: just harder."""
    hardness = np.full(10, 0.2)
    hardness[9] = 0.3
    forgetting = np.zeros((10, 10))
    forgetting[0, 1], forgetting[0, 2], forgetting[1, 2] = 0.5, 0.3, 0.5
    return ToyWorld(hardness, np.zeros((10, 10)), forgetting, np.ones((10, 2)))


def best(valued: list[Valued]) -> Valued:
    return max(valued, key=lambda each: -math.inf if each.value is None else each.value)


def test_exhaustive_search_finds_the_planted_optimum() -> None:
    # R of (0), (0, 1), (0, 1, 2): -0.8; 0.5 - 0.8; (0.8 + 0.5) / 2 - 0.8
    found = best(evaluate_exhaustively(explorer_of(planted_world()), single_class_tree(10, 2), settings_of(10, 2)))
    assert found.line == ((0,), (1,), (2,))
    assert found.value == pytest.approx(-0.8 - 0.3 - 0.15)


def test_without_look_ahead_the_search_falls_into_the_trap() -> None:
    valued = evaluate_exhaustively(explorer_of(planted_world()), single_class_tree(10, 0), settings_of(10, 0))
    assert best(valued).task == (9,)


@pytest.mark.parametrize(("look_ahead", "discount"), [(0, 1.0), (1, 1.0), (1, 0.5), (2, 0.9)])
@pytest.mark.parametrize("seed", [0, 1])
def test_exhaustive_values_equal_brute_force(seed: int, look_ahead: int, discount: float) -> None:
    world, classes = random_world(7, seed), 7
    valued = evaluate_exhaustively(
        explorer_of(world), single_class_tree(classes, look_ahead), settings_of(classes, look_ahead, discount=discount)
    )
    for each in valued:
        orders = (o for o in itertools.permutations(range(classes), look_ahead + 1) if o[0] == each.task[0])
        lines = {
            order: sum(discount**i * reward_by_formula(world, order[: i + 1]) for i in range(len(order)))
            for order in orders
        }
        assert each.value == pytest.approx(max(lines.values()), abs=1e-9)
        assert lines[tuple(task[0] for task in each.line)] == pytest.approx(max(lines.values()), abs=1e-9)


def test_look_ahead_starts_from_what_was_learned() -> None:
    world = random_world(6, seed=3)
    explorer = explorer_of(world)
    explorer.reward(((2,),))
    valued = evaluate_exhaustively(explorer, single_class_tree(6, 1, root=((2,),)), settings_of(6, 1))
    for each in valued:
        others = [c for c in range(6) if c not in (2, each.task[0])]
        first = reward_by_formula(world, (2, each.task[0]))
        expected = first + max(reward_by_formula(world, (2, each.task[0], c)) for c in others)
        assert each.value == pytest.approx(expected)


def test_only_the_hardest_candidates_are_expanded_and_few_children_are_learned() -> None:
    explorer = explorer_of(random_world(8, seed=1))
    tree = single_class_tree(8, 1, children=3)
    valued = evaluate_exhaustively(explorer, tree, settings_of(8, 1, expand=2, children=3))
    expanded = [each for each in valued if each.value is not None]
    assert {each.task for each in expanded} == {e.task for e in sorted(valued, key=lambda e: -e.reward)[:2]}
    assert explorer.ledger.pairs == 8 + 2 * 3
    assert all(len(explorer.children((each.task,))) == 3 for each in expanded)


@pytest.mark.parametrize(("look_ahead", "temperature"), [(0, 0.0), (1, 0.0), (2, 0.0), (1, 0.1), (2, 0.1)])
def test_states_left_are_those_that_can_still_be_chosen_or_carried(look_ahead: int, temperature: float) -> None:
    world = random_world(6, seed=2)
    learner = ToyLearner(world)
    explorer = Explorer([learner], MemoryJournal())
    valued = evaluate_exhaustively(
        explorer, single_class_tree(6, look_ahead), settings_of(6, look_ahead, temperature=temperature)
    )
    chosen = best(valued).task
    left = {each.task for each in valued if explorer.keeps((each.task,))}
    assert left == ({each.task for each in valued} if temperature else {chosen})
    children = [path for path in explorer.children((chosen,)) if explorer.keeps(path)]
    assert len(children) == (5 if look_ahead and not temperature else 0)


def test_leaf_states_are_deleted_as_they_are_scored() -> None:
    # 6 candidates, 6 * 5 children, 6 * 5 * 4 grandchildren: 156 pairs, of which few are stored at once
    explorer = explorer_of(random_world(6, seed=2))
    evaluate_exhaustively(explorer, single_class_tree(6, 2), settings_of(6, 2))
    assert explorer.ledger.pairs == 156
    assert explorer.ledger.peak_states <= 6 + 2 * 5 + 1
    assert explorer.ledger.relearned == 0


def test_an_inner_node_without_candidates_is_topped_up() -> None:
    asked: list[tuple[Path, int]] = []

    def fresh(path: Path, wanted: int) -> list[Task]:
        asked.append((path, wanted))
        return [(4, 5)]

    tree = StepTree((), ((0, 1), (1, 2)), 1, None, fresh)
    assert tree.tasks_after(((0, 1),)) == [(4, 5)]
    assert tree.tasks_after(((0, 1),)) == [(4, 5)]
    assert asked == [(((0, 1),), 1)]


def test_look_ahead_ends_with_the_sequence() -> None:
    plan = settings_of(10, 2)
    assert [depth_at(plan, learned) for learned in (0, 7, 8, 9)] == [2, 2, 1, 0]


@given(st.lists(st.one_of(st.none(), st.floats(-2, 1)), min_size=1, max_size=8), st.integers(0, 50))
def test_without_temperature_the_first_best_value_is_chosen(values: list[float | None], seed: int) -> None:
    known = [value for value in values if value is not None]
    if not known:
        with pytest.raises(ValueError, match="no candidate"):
            choose(values, 0.0, seed)
        return
    assert choose(values, 0.0, seed) == values.index(max(known))


def test_temperature_draws_by_the_softmax_of_values() -> None:
    values, tau, draws = [-0.5, None, -0.4, -0.7], 0.1, 4000
    counted = collections.Counter(choose(values, tau, seed) for seed in range(draws))
    weights = {i: math.exp(v / tau) for i, v in enumerate(values) if v is not None}
    assert counted[1] == 0
    for position, weight in weights.items():
        assert counted[position] / draws == pytest.approx(weight / sum(weights.values()), abs=0.03)


def test_a_low_temperature_takes_the_best_and_does_not_overflow() -> None:
    assert choose([-1e6, 0.0, -1.0], 1e-9, seed=0) == 1


def quality(classes: int, world_seed: int, seeds: range, look_ahead: int, share: float) -> list[tuple[float, float]]:
    """(Q - Q_random) / (Q_opt - Q_random) of tree searches, and the share of learn calls that each of them used.

    Q is that of the line found, Q_opt the best line of all, Q_random the mean over candidates of their best lines.
    """
    world, tree = random_world(classes, world_seed), single_class_tree(classes, look_ahead)
    full = explorer_of(world)
    values = [each.value for each in evaluate_exhaustively(full, tree, settings_of(classes, look_ahead)) if each.value]
    optimum, random = max(values), sum(values) / len(values)
    budget = int(share * full.ledger.learn_calls)
    result = []
    for seed in seeds:
        explorer = explorer_of(world)
        limited = settings_of(classes, look_ahead, method="mcts", learn_calls=budget)
        found = best(TreeSearch(explorer, tree, limited, seed).run()).value
        assert found is not None
        result.append(((found - random) / (optimum - random), explorer.ledger.learn_calls / full.ledger.learn_calls))
    return result


def test_tree_search_comes_close_to_the_optimum_for_a_fraction_of_the_learn_calls() -> None:
    results = [each for world in range(4) for each in quality(10, world, range(3), look_ahead=2, share=0.3)]
    assert max(share for _, share in results) <= 0.3
    assert sum(score for score, _ in results) / len(results) >= 0.95


def test_tree_search_seldom_falls_into_the_trap() -> None:
    limited = settings_of(10, 2, method="mcts", learn_calls=int(0.3 * (10 + 90 + 720)))
    searches = (TreeSearch(explorer_of(planted_world()), single_class_tree(10, 2), limited, s) for s in range(8))
    firsts = [best(search.run()).task for search in searches]
    assert firsts.count((9,)) <= 1
    assert firsts.count((0,)) >= 4


@settings(max_examples=12)
@given(st.integers(0, 100), st.integers(0, 2), st.sampled_from([0.5, 1.0]))
def test_tree_search_with_enough_budget_is_exhaustive(seed: int, look_ahead: int, discount: float) -> None:
    world, tree = random_world(5, seed), single_class_tree(5, look_ahead)
    expected = evaluate_exhaustively(explorer_of(world), tree, settings_of(5, look_ahead, discount=discount))
    generous = settings_of(5, look_ahead, discount=discount, method="mcts", learn_calls=1000)
    found = TreeSearch(explorer_of(world), tree, generous, seed).run()
    assert [(each.task, each.reward) for each in found] == [(each.task, each.reward) for each in expected]
    assert [each.value for each in found] == pytest.approx([each.value for each in expected])


@given(st.integers(0, 100), st.integers(8, 60), st.integers(1, 2))
@settings(max_examples=20)
def test_tree_search_keeps_to_its_budget(seed: int, budget: int, look_ahead: int) -> None:
    explorer = explorer_of(random_world(6, seed))
    tight = settings_of(6, look_ahead, method="mcts", learn_calls=budget)
    valued = TreeSearch(explorer, single_class_tree(6, look_ahead), tight, seed).run()
    assert explorer.ledger.learn_calls <= budget
    assert any(each.value is not None for each in valued)
    assert all(len(each.line) == look_ahead + 1 for each in valued if each.value is not None)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "mcts"},
        {"learn_calls": 10},
        {"carry": 10},
        {"temperature": 0.1},
        {"discount": 0.0},
        {"look_ahead": 3},
        {"epsilon": 0.0},
        {"unknown": 1},
    ],
)
def test_settings_that_contradict_themselves_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        SearchSettings.model_validate(changes)
