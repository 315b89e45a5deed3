"""Records are final, pairs are learned once, and what was lost is found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath

import pytest

from suite.errors import StoreError, UsageError
from suite.sequences.environment import INITIAL, Path, state_name
from suite.sequences.explorer import Explorer
from suite.sequences.journal import DirectoryJournal, Journal, MemoryJournal
from suite.sequences.toy import ITEMS, FolderShelf, ToyLearner, random_world

A, B, C = (0,), (1,), (2,)


@pytest.fixture(params=["memory", "directory"])
def journal(request: pytest.FixtureRequest, tmp_path: FilePath) -> Journal:
    return MemoryJournal() if request.param == "memory" else DirectoryJournal(tmp_path / "journal")


@pytest.fixture
def learner() -> ToyLearner:
    return ToyLearner(random_world(6, seed=0))


def test_a_record_is_returned_as_written(journal: Journal) -> None:
    assert journal.get("pair/1") is None
    journal.put("pair/1", {"hits": [[1, 2]], "seconds": 0.5})
    assert journal.get("pair/1") == {"hits": [[1, 2]], "seconds": 0.5}
    assert journal.get("pair/2") is None


def test_the_first_record_of_a_key_stays(journal: Journal) -> None:
    assert journal.put("key", {"value": 1}) == {"value": 1}
    assert journal.put("key", {"value": 2}) == {"value": 1}
    assert journal.get("key") == {"value": 1}


def test_keys_may_hold_any_text(journal: Journal) -> None:
    journal.put("../../etc/passwd\n", {"value": 1})
    assert journal.get("../../etc/passwd\n") == {"value": 1}


def test_a_directory_journal_survives_its_process(tmp_path: FilePath) -> None:
    DirectoryJournal(tmp_path).put("key", {"value": 1})
    assert DirectoryJournal(tmp_path).get("key") == {"value": 1}


def test_a_directory_journal_holds_whole_records_only(tmp_path: FilePath) -> None:
    journal = DirectoryJournal(tmp_path)
    journal.put("key", {"value": 1})
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '"text"'])
def test_a_torn_record_is_an_error_not_a_guess(tmp_path: FilePath, text: str) -> None:
    journal = DirectoryJournal(tmp_path)
    journal.put("key", {"value": 1})
    next(tmp_path.iterdir()).write_text(text)
    with pytest.raises(StoreError, match="no JSON object"):
        journal.get("key")


def test_an_unwritable_place_is_reported(tmp_path: FilePath) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        DirectoryJournal(tmp_path / "file" / "journal")
    journal = DirectoryJournal(tmp_path / "journal")
    (tmp_path / "journal").rmdir()
    with pytest.raises(StoreError, match="cannot be written"):
        journal.put("key", {})


def test_a_state_is_named_by_learner_and_tasks_in_order() -> None:
    assert state_name("x", ()) == INITIAL
    assert state_name("x", (A, B)) == state_name("x", (A, B))
    assert len({state_name("x", (A, B)), state_name("x", (B, A)), state_name("y", (A, B)), state_name("x", (A,))}) == 4


def test_a_pair_is_learned_once(journal: Journal, learner: ToyLearner) -> None:
    explorer = Explorer([learner], journal)
    rewards = [explorer.reward((A,)), explorer.reward((A, B)), explorer.reward((A, C)), explorer.reward((A, B))]
    assert rewards[1] == rewards[3]
    assert learner.learn_calls == 3
    ledger = explorer.ledger
    assert (ledger.pairs, ledger.learn_calls, ledger.learned, ledger.naive_learn_calls) == (3, 3, 3, 1 + 2 + 2)


def test_reward_follows_the_world(learner: ToyLearner, journal: Journal) -> None:
    world = random_world(6, seed=0)
    explorer = Explorer([learner], journal)
    explorer.reward((A,))
    before, after, new = world.accuracy((A,), 0), world.accuracy((A, B), 0), world.accuracy((A, B), 1)
    assert explorer.reward((A, B)) == pytest.approx((before - after) - (before + new) / 2, abs=2 / ITEMS)
    assert explorer.learner_rewards((A, B)) == [explorer.reward((A, B))]
    assert explorer.counts((A, B))[0].tasks == 2


def test_a_second_search_with_the_same_journal_learns_nothing(journal: Journal) -> None:
    world = random_world(6, seed=0)
    first = Explorer([ToyLearner(world)], journal)
    expected = [first.reward((A,)), first.reward((A, B))]
    learner = ToyLearner(world)
    again = Explorer([learner], journal)
    assert [again.reward((A,)), again.reward((A, B))] == expected
    assert learner.learn_calls == 0
    assert (again.ledger.reused, again.ledger.learned, again.ledger.learn_calls) == (2, 0, 2)


def test_a_lost_state_is_learned_again_from_what_is_left(journal: Journal) -> None:
    world = random_world(6, seed=0)
    first = Explorer([ToyLearner(world)], journal)
    first.reward((A,))
    first.reward((A, B))
    learner = ToyLearner(world)
    again = Explorer([learner], journal)
    path: Path = ()
    for task in (A, B, C):
        path = (*path, task)
        again.reward(path)
    assert (again.ledger.relearned, again.ledger.learned, learner.learn_calls) == (2, 1, 3)


def test_a_state_stored_before_it_was_scored_is_not_learned_again(tmp_path: FilePath) -> None:
    world = random_world(6, seed=0)
    states = FolderShelf(tmp_path / "states")
    killed = ToyLearner(world, states=states)
    killed.learn(INITIAL, A, state_name(killed.fingerprint, (A,)))
    learner = ToyLearner(world, states=states)
    Explorer([learner], MemoryJournal()).reward((A,))
    assert learner.learn_calls == 0


def test_states_not_asked_for_are_deleted(learner: ToyLearner, journal: Journal) -> None:
    explorer = Explorer([learner], journal)
    for path in ((A,), (A, B), (A, C)):
        explorer.reward(path)
    explorer.keep_only([(A, C)])
    stored = [path for path in ((A,), (A, B), (A, C)) if learner.has(state_name(learner.fingerprint, path))]
    assert stored == [(A, C)]
    assert explorer.keeps((A, C))
    assert not explorer.keeps((A,))
    assert explorer.ledger.peak_states == 3


def test_learning_again_leaves_no_stray_states(learner: ToyLearner, journal: Journal) -> None:
    explorer = Explorer([learner], journal)
    for path in ((A,), (A, B)):
        explorer.reward(path)
    explorer.keep_only([(A, B)])
    learner.discard(state_name(learner.fingerprint, (A, B)))
    explorer.reward((A, B, C))
    assert not learner.has(state_name(learner.fingerprint, (A,)))
    assert learner.has(state_name(learner.fingerprint, (A, B)))


def test_a_state_is_secured_while_its_prefix_is_there(learner: ToyLearner, journal: Journal) -> None:
    explorer = Explorer([learner], journal)
    explorer.reward((A,))
    explorer.reward((A, B))
    names = [state_name(learner.fingerprint, path) for path in ((A,), (A, B))]
    explorer.secure((A, B))
    assert explorer.ledger.relearned == 0
    learner.discard(names[1])
    explorer.secure((A, B))
    assert learner.has(names[1])
    assert explorer.ledger.relearned == 1
    learner.discard(names[0])
    learner.discard(names[1])
    explorer.secure((A, B))
    assert not learner.has(names[1])


def test_the_reward_of_a_group_is_the_mean(journal: Journal) -> None:
    learners = [ToyLearner(random_world(6, seed), name=f"toy {seed}") for seed in (0, 1)]
    explorer = Explorer(learners, journal)
    assert explorer.reward((A,)) == pytest.approx(sum(explorer.learner_rewards((A,))) / 2)
    assert explorer.ledger.learn_calls == 2


def test_identical_learners_are_refused(learner: ToyLearner, journal: Journal) -> None:
    with pytest.raises(UsageError, match="identical"):
        Explorer([learner, learner], journal)


@pytest.mark.parametrize("record", [{}, {"hits": []}, {"hits": [[1]]}, {"hits": [["x", 1]]}, {"hits": 3}])
def test_a_malformed_pair_is_reported(learner: ToyLearner, record: dict[str, object]) -> None:
    journal = MemoryJournal()
    journal.put(f"pair/{state_name(learner.fingerprint, (A,))}", record)
    with pytest.raises(StoreError, match="malformed"):
        Explorer([learner], journal).reward((A,))


def test_every_pair_is_reported(learner: ToyLearner, journal: Journal) -> None:
    seen: list[int] = []
    explorer = Explorer([learner], journal, lambda ledger: seen.append(ledger.pairs))
    explorer.reward((A,))
    explorer.reward((A, B))
    assert seen == [1, 2]


def test_a_state_is_scored_on_its_own_tasks_only(learner: ToyLearner) -> None:
    learner.learn(INITIAL, A, "state")
    check: Callable[[], object] = lambda: learner.score("state", [B])  # noqa: E731
    with pytest.raises(ValueError, match="it has learned"):
        check()
