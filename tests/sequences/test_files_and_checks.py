"""A sequence file says all, agrees with itself, and shows when it was changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError, UsageError
from suite.sequences.checks import compare, pool_view, verify
from suite.sequences.files import SequenceFile, load_sequence, save_sequence, sequence_file, sequence_schema
from suite.sequences.generation import generate
from suite.sequences.journal import MemoryJournal
from suite.sequences.pool import Pool, PoolClass, PoolDataset
from suite.sequences.settings import SearchSettings
from suite.sequences.toy import ToyLearner, random_world

SCHEMA = Path(__file__).parents[2] / "suite" / "sequences" / "sequence.schema.json"


def pool_of(classes: int, name: str = "toy") -> Pool:
    def dataset(label: str, members: range) -> PoolDataset:
        made = tuple(
            PoolClass(dataset=label, name=f"{c:02}", train=9, sha256=hashlib.sha256(f"{c}".encode()).hexdigest())
            for c in members
        )
        return PoolDataset(name=label, licence="CC0", source="made up", classes=made)

    half = classes // 2
    return Pool(name=name, datasets=(dataset("left", range(half)), dataset("right", range(half, classes))))


POOL = pool_of(40)


def made(seed: int = 0, **changes: Any) -> SequenceFile:
    base = {"tasks": 4, "classes_per_task": 2, "n_greedy": 20, "n_clusters": 2, "n_candidates": 5, "carry": 2}
    settings = SearchSettings.model_validate({**base, **changes})
    group = [ToyLearner(random_world(40, s), name=f"toy {s}") for s in range(2)]
    learners = [] if settings.strategy == "random" else group
    outcome = generate(pool_view(POOL), learners, settings, seed, MemoryJournal())
    return sequence_file(outcome, POOL, learners, settings, seed, versions={"suite": "0.1.0"})


@pytest.fixture(scope="module")
def file() -> SequenceFile:
    return made()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"strategy": "random"},
        {"strategy": "similar"},
        {"temperature": 0.1, "expand": None},
        {"method": "mcts", "learn_calls": 30},
    ],
)
def test_every_kind_of_sequence_verifies(changes: dict[str, Any]) -> None:
    assert verify(made(**changes), POOL) == []


def test_a_file_survives_the_disk(file: SequenceFile, tmp_path: Path) -> None:
    save_sequence(file, tmp_path / "deep" / "sequence.json")
    again = load_sequence(tmp_path / "deep" / "sequence.json")
    assert again == file
    assert verify(again, POOL) == []
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["sequence.json"]


def test_the_same_search_writes_the_same_file(file: SequenceFile) -> None:
    assert made().model_dump_json() == file.model_dump_json()


def test_learners_are_named_by_fingerprint(file: SequenceFile) -> None:
    assert [each.name for each in file.learners] == ["toy 0", "toy 1"]
    assert len({each.fingerprint for each in file.learners}) == 2
    assert {each.isolation for each in file.learners} == {"none"}


def changed(file: SequenceFile, edit: str) -> SequenceFile:
    data = file.model_dump(mode="json")
    exec(edit, {"d": data})  # the edits are those below
    return SequenceFile.model_validate(data)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        ("d['seed'] += 1", "digest"),
        ("d['seed'] += 1", "first task is not that of the seed"),
        ("d['tasks'].pop()", "3 tasks instead of 4"),
        ("d['tasks'][1].pop()", "Task 2 has 1 classes instead of 2"),
        ("d['tasks'][1] = d['tasks'][0]", "occurs twice"),
        ("d['steps'].pop()", "3 steps for 4 tasks"),
        ("d['tasks'][1].reverse()", "Task 2 is not the candidate"),
        ("d['steps'][1]['chosen'] = 99", "Task 2 is not the candidate"),
        (
            "d['steps'][1]['candidates'][0]['value'] = 1.0; d['steps'][1]['candidates'][1]['value'] = 1.5",
            "highest value",
        ),
        ("d['learners'][0]['correct'][2][0] += 5", "reward of task 3"),
        ("d['learners'][0]['correct'][2][0] = -5", "malformed"),
        ("[(r['correct'].pop(), r['total'].pop()) for r in d['learners']]", "as many tasks"),
        ("d['tasks'][3][0] = 'left/none'", "no class left/none"),
        ("d['pool']['hash'] = 'x'", "from another or from other images"),
    ],
)
def test_what_was_changed_is_found(file: SequenceFile, edit: str, complaint: str) -> None:
    assert any(complaint in each for each in verify(changed(file, edit), POOL))


def test_without_the_pool_a_file_is_checked_against_itself(file: SequenceFile) -> None:
    assert verify(file) == []
    assert verify(file, pool_of(38)) != []


def test_comparison_of_a_file_with_itself_and_with_others(file: SequenceFile) -> None:
    same = compare(file, file)
    assert (same.same_pool, same.common_start, same.shared_classes, same.shared_datasets) == (True, 4, 1.0, 1.0)
    assert same.shared_by_step == [1.0] * 4
    assert same.differing_settings == []
    other = compare(file, made(strategy="random"))
    assert 1 <= other.common_start < 4
    assert other.differing_settings == ["strategy"]
    assert other.final_rewards[0] is not None
    assert other.final_rewards[1] is None
    shared = {c for t in file.tasks for c in t} & {c for t in made(strategy="random").tasks for c in t}
    assert other.shared_classes == pytest.approx(len(shared) / (16 - len(shared)))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "seed": NaN}', "[" * 100_000])
def test_malformed_files_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sequence.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no sequence file") as caught:
        load_sequence(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_reported(file: SequenceFile, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_sequence(tmp_path / "none.json")
    (tmp_path / "plain").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        save_sequence(file, tmp_path / "plain" / "sequence.json")


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.sequences.files.MAX_FILE_BYTES", 10)
    (tmp_path / "huge.json").write_text(" " * 11)
    with pytest.raises(UsageError, match="larger"):
        load_sequence(tmp_path / "huge.json")


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text("utf-8")) == sequence_schema()
