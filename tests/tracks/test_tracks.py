"""Tracks: the shipped ones are the paper's, mistakes are named in one line, every value is part of the hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from suite.data.scenario import Scenario
from suite.errors import TrackError, UsageError
from suite.tracks import Track, load_track, parse_track, track_names

TEXT = """
name = "mine"
title = "Mine"
summary = "A track."
group = "scratch"
scenario = "2 + 2x4"
draws = 3
seeds = 2

[tuning]
data_set = "letters-1:10"

[[evaluation]]
data_set = "digits"
similarity = "low"

[exemplars]
total = 20

[first_task]
epochs = 2
lr = 0.1
milestones = [1]
lr_decay = 0.1
weight_decay = 0.0

[space.epochs]
kind = "choice"
values = [1, 2]

[budgets]
task_seconds = 60
"""


def values(text: str = TEXT) -> dict[str, Any]:
    return tomllib.loads(text)


# --- the shipped tracks ---------------------------------------------------------------------------------------------

ALL = track_names()


@pytest.mark.parametrize("name", ALL)
def test_a_shipped_track_is_sound(name: str) -> None:
    track = load_track(name)
    assert track.name == name
    assert track.title
    assert track.summary
    assert track.tuning.data_set not in [e.data_set for e in track.evaluation]
    for data_set in track.data_sets:
        assert Scenario.parse(track.scenario_for(data_set)).num_tasks > 1
    assert track.budgets.trial_seconds >= track.budgets.task_seconds


def test_no_two_shipped_tracks_are_the_same() -> None:
    assert len({load_track(name).hash for name in ALL}) == len(ALL)
    assert len({load_track(name).title for name in ALL}) == len(ALL)


# Transcribed from GTEP, tables 1 and 2: (tuning, evaluation, classes of the first task and of each later one, tasks).
# Table 2 prints one cell of evaluation sets for both tuning sets of 200 classes; tables 15 to 18 have the pairs.
SCRATCH = {
    ("ImageNet-100-1", ("ImageNet-100-2",), (10, 10), 10),
    ("ImageNet-100-1", ("ImageNet-100-2",), (50, 10), 6),
    ("ImageNet-50-1", ("CIFAR-50-2", "ImageNet-50-2"), (5, 5), 10),
    ("ImageNet-50-1", ("CIFAR-50-2", "ImageNet-50-2"), (25, 5), 6),
    ("CIFAR-50-1", ("CIFAR-50-2", "ImageNet-50-2"), (5, 5), 10),
    ("CIFAR-50-1", ("CIFAR-50-2", "ImageNet-50-2"), (25, 5), 6),
}
PRETRAINED = {
    ("CUB-200", ("ImageNet-A", "ImageNet-R"), (10, 10), 20),
    ("CUB-200", ("ImageNet-A", "ImageNet-R"), (20, 20), 10),
    ("ImageNet-R", ("CUB-200", "ImageNet-A"), (10, 10), 20),
    ("ImageNet-R", ("CUB-200", "ImageNet-A"), (20, 20), 10),
    ("CUB-100-1", ("CUB-100-2", "ImageNet-A-2", "ImageNet-R-2"), (5, 5), 20),
    ("CUB-100-1", ("CUB-100-2", "ImageNet-A-2", "ImageNet-R-2"), (10, 10), 10),
    ("ImageNet-R-1", ("CUB-100-2", "ImageNet-A-2", "ImageNet-R-2"), (5, 5), 20),
    ("ImageNet-R-1", ("CUB-100-2", "ImageNet-A-2", "ImageNet-R-2"), (10, 10), 10),
}
PAPER = [load_track(name) for name in ALL if name.startswith("gtep-")]


def row(track: Track) -> tuple[str, tuple[str, ...], tuple[int, int], int]:
    scenario = Scenario.parse(track.scenario)
    evaluation = tuple(sorted(e.data_set for e in track.evaluation))
    return track.tuning.data_set, evaluation, (scenario.base, scenario.increment), scenario.num_tasks


def test_the_papers_fourteen_tracks_are_tables_1_and_2() -> None:
    assert {row(t) for t in PAPER if t.group == "scratch"} == SCRATCH
    assert {row(t) for t in PAPER if t.group == "pretrained"} == PRETRAINED
    assert len(PAPER) == 14


@pytest.mark.parametrize("track", PAPER, ids=lambda t: t.name)
def test_a_track_of_the_paper_has_its_settings(track: Track) -> None:
    assert (track.draws, track.seeds) == (30, 5)
    assert not track.is_reduced
    assert not track.space
    assert track.announces_tasks
    assert {track.scenario_for(name) for name in track.data_sets} == {track.scenario}
    classes = int(re.findall(r"-(50|100|200)", f"{track.tuning.data_set}-200")[0])
    if track.tuning.data_set == "ImageNet-R-1":
        classes = 100
    assert Scenario.parse(track.scenario).class_count == classes
    if track.group == "scratch":
        assert track.first_task is not None
        assert track.first_task.model_dump() == {  # table 3
            "epochs": 200,
            "lr": 0.1,
            "milestones": [60, 120, 170],
            "lr_decay": 0.1,
            "weight_decay": 0.0005,
        }
        assert track.exemplars.model_dump() == {"total": 20 * classes, "per_class": None}  # section 4.1
        assert track.backbone is None
    else:
        assert track.first_task is None
        assert track.backbone is not None
        assert "vit_base_patch16_224" in track.backbone.name  # section 4.2: ViT B16


@pytest.mark.parametrize("track", PAPER, ids=lambda t: t.name)
def test_similarity_is_high_within_a_source_and_low_across(track: Track) -> None:
    def source(name: str) -> str:
        return name.split("-50")[0].split("-100")[0].removesuffix("-1").removesuffix("-2").removesuffix("-200")

    for part in track.evaluation:
        assert part.similarity == ("high" if source(part.data_set) == source(track.tuning.data_set) else "low")


@pytest.mark.parametrize("name", [n for n in ALL if not n.startswith("gtep-")])
def test_the_embedded_tracks_are_marked_reduced(name: str) -> None:
    assert load_track(name).is_reduced


# --- files of users -------------------------------------------------------------------------------------------------


def test_a_file_is_a_track(tmp_path: Path) -> None:
    path = tmp_path / "any.toml"
    path.write_text(TEXT)
    assert load_track(str(path)) == parse_track(TEXT, "x")
    assert load_track(str(path)).budgets.task_seconds == 60
    assert load_track(str(path)).data_sets == ["letters-1:10", "digits"]


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(TrackError, match="Did you mean 'digits-smoke'") as caught:
        load_track("digits-smok")
    assert "suite track list" in caught.value.remedy
    with pytest.raises(TrackError, match=r"There is no track '\.\./secret'"):
        load_track("../secret")


MALFORMED: dict[str, tuple[str, str, str]] = {
    "a misspelt field": ("draws = 3", "drawz = 3", r"drawz: Extra inputs"),
    "a misspelt budget": ("task_seconds", "task_second", r"budgets\.task_second: Extra"),
    "a misspelt exemplar rule": ("total = 20", "totl = 20", r"exemplars\.totl: Extra"),
    "a misspelt first task": ("epochs = 2", "epochs = 2\nmomentum = 0.9", r"first_task\.momentum: Extra"),
    "a misspelt range": ("values = [1, 2]", "value = [1, 2]", r"space\.epochs"),
    "no tuning set": ('[tuning]\ndata_set = "letters-1:10"', "", "tuning: Field required"),
    "no evaluation": ('[[evaluation]]\ndata_set = "digits"\nsimilarity = "low"', "", "evaluation: Field required"),
    "a similarity of its own": ('"low"', '"middling"', r"evaluation\.0\.similarity"),
    "no draws": ("draws = 3", "draws = 0", "draws: Input should be greater than 0"),
    "half a seed": ("seeds = 2", "seeds = 1.5", "seeds"),
    "no time": ("task_seconds = 60", "task_seconds = 0", r"budgets\.task_seconds"),
    "endless time": ("task_seconds = 60", "task_seconds = inf", r"budgets\.task_seconds: .*finite"),
    "no time at all": ("task_seconds = 60", "task_seconds = nan", r"budgets\.task_seconds"),
    "an infinite rate": ("lr = 0.1", "lr = inf", r"first_task\.lr: .*finite"),
    "negative exemplars": ("total = 20", "total = -1", r"exemplars\.total"),
    "another scenario": ('"2 + 2x4"', '"two tasks"', "scenario: String should match"),
    "a name with a path": ('name = "mine"', 'name = "../mine"', "name: String should match"),
    "a data set with a path": ('"digits"', '"../digits"', r"evaluation\.0\.data_set"),
    "the tuning set again": ('"digits"', '"letters-1:10"', "used for tuning"),
    "a part of the tuning set": ('"digits"', '"letters-1:5"', "used for tuning"),
    "the tuning set at another size": ('"digits"', '"letters-1@64"', "used for tuning"),
    "the whole that the tuning set is half of": ('"digits"', '"letters:50"', "used for tuning"),
    "the whole of the tuning set": ('"digits"', '"letters-1"', "used for tuning"),
    "pretrained without a backbone": ('group = "scratch"', 'group = "pretrained"', "names a backbone"),
    "an unknown group": ('group = "scratch"', 'group = "other"', "group: Input should be"),
    "a range without a kind": ('kind = "choice"\n', "", r"space\.epochs"),
    "a range with a bad name": ("[space.epochs]", "[space.Epochs]", r"space\.Epochs"),
    "broken TOML": ("draws = 3", "draws = ", "not TOML: .*line 7"),
    "a field twice": ("draws = 3", "draws = 3\ndraws = 4", "not TOML"),
    "an endless number": ("draws = 3", "draws = " + "9" * 5000, "not TOML"),
    "endless brackets": ("draws = 3", "draws = " + "[" * 5000, "not TOML"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_mistake_is_named_in_one_line(name: str) -> None:
    old, new, complaint = MALFORMED[name]
    assert TEXT.count(old) == 1
    with pytest.raises(TrackError, match=complaint) as caught:
        parse_track(TEXT.replace(old, new), "mine.toml")
    assert "mine.toml" in caught.value.message
    assert "\n" not in str(caught.value)
    assert len(caught.value.message) < 400
    assert caught.value.remedy


def test_an_evaluation_set_is_named_once() -> None:
    again = TEXT.replace("[exemplars]", '[[evaluation]]\ndata_set = "digits"\nsimilarity = "high"\n\n[exemplars]')
    with pytest.raises(TrackError, match="named twice"):
        parse_track(again, "mine")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_gives_one_line(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TrackError, match=r"mine\.toml"):
        load_track(str(path))


@given(st.text(alphabet="0123456789+x \t", max_size=12) | st.from_regex(r"\A[0-9]{1,3} ?\+ ?[0-9] ?x ?[0-9]\Z"))
def test_the_track_and_the_generator_read_the_same_scenarios(text: str) -> None:
    """Two layers that may not import each other know the grammar; empty tasks are the generator's to refuse."""
    raw = {**values(), "scenario": text}
    try:
        Scenario.parse(text)
    except UsageError as error:
        if "without classes" not in str(error):
            with pytest.raises(ValidationError):
                Track.model_validate(raw)
    else:
        assert Track.model_validate(raw).scenario == text


# --- the hash -------------------------------------------------------------------------------------------------------


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    return [path] if items is None else [p for key, value in items for p in leaves(value, (*path, key))]


OTHER: dict[Any, Any] = {"scratch": None, "choice": None, "low": "high", "2 + 2x4": "2 + 1x8"}


def changed(raw: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any] | None:
    copy: Any = Track.model_validate(raw).model_dump(mode="json")
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    old = inner[path[-1]]
    if isinstance(old, bool):
        new: Any = not old
    elif old is None:
        new = {"per_class": 3, "scenario": "10"}.get(path[-1])
    elif isinstance(old, int | float):
        new = old + 1 if path[-1] != "agreement" else old / 2
    else:
        new = OTHER.get(old, f"{old}x")
    if new is None:
        return None
    inner[path[-1]] = new
    return dict(copy)


TEXTS = {("title",), ("summary",)}
PATHS = [p for p in leaves(parse_track(TEXT, "x").model_dump(mode="json")) if p not in TEXTS]


@pytest.mark.parametrize("text", ["title", "summary"])
def test_mending_a_text_orphans_no_result(text: str) -> None:
    assert Track.model_validate({**values(), text: "Mended."}).hash == parse_track(TEXT, "x").hash


@pytest.mark.parametrize("path", PATHS, ids=lambda p: ".".join(map(str, p)))
def test_the_hash_changes_with_any_value(path: tuple[Any, ...]) -> None:
    other = changed(values(), path)
    if other is None:  # one value of a kind that others hang on: changed with them below
        assert path in {("group",), ("space", "epochs", "kind"), ("backbone",)}
        return
    assert Track.model_validate(other).hash != parse_track(TEXT, "x").hash


def test_the_hash_changes_with_the_group() -> None:
    raw = {k: v for k, v in values().items() if k != "first_task"}
    scratch = Track.model_validate(raw)
    pretrained = Track.model_validate({**raw, "group": "pretrained", "backbone": {"name": "vit"}})
    other = Track.model_validate({**raw, "group": "pretrained", "backbone": {"name": "other"}})
    assert len({scratch.hash, pretrained.hash, other.hash, parse_track(TEXT, "x").hash}) == 4


def test_the_hash_does_not_change_with_the_writing() -> None:
    text = "# a comment\n" + TEXT.replace("draws = 3", "draws   = 0x3")
    assert parse_track(text, "elsewhere").hash == parse_track(TEXT, "x").hash
    assert Track.model_validate_json(parse_track(TEXT, "x").model_dump_json()).hash == parse_track(TEXT, "x").hash
