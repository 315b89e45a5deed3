"""Image folders, packed or not: `<class>/<image>`, or `train/<class>/<image>` with `test/` or `val/` beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.data.dataset import Progress, file_sha256
from suite.data.manifest import Split
from suite.data.readers.archive import Archive, open_archive
from suite.data.readers.images import SUFFIXES, decode
from suite.data.readers.source import Source, SplitOrigin, SplitRule, split_class
from suite.data.writer import ClassPlan, Writer
from suite.errors import DataError
from suite.seeds import derive_seed, shuffled

Select = Callable[[Sequence[str]], Sequence[str]]
_LAYOUT = "Arrange it as <class>/<image>, or as train/<class>/<image> and test/<class>/<image>."
_TRAIN, _TEST = ("train", "training"), ("test", "testing", "val", "valid", "validation")
_CUB_FILES = ("images.txt", "train_test_split.txt")

Files = dict[str, tuple[list[str], list[str]]]  # class -> train and test members


@dataclass(frozen=True)
class _Found:
    """Member of the archive, and its path without the folders that all images share."""

    member: str
    parts: tuple[str, ...]


def read_folders(
    path: Path, name: str, rule: SplitRule = "seeded", select: Select | None = None, cap: int | None = None
) -> Source:
    """Find the classes of data set `name` in an archive or a folder.

    The split is the source's: its folders train and test (else val), or the list that CUB-200-2011 carries. Where
    there is none, each class is split by `rule`. `select` picks classes from the sorted names; at most `cap` training
    images of a class are kept, drawn by a fixed shuffle. Raises DataError.
    """
    archive = open_archive(path)
    found = _without_shared_folders(_images(archive))
    files = _by_cub_list(archive, found) or _by_folders(found)
    origin: SplitOrigin = "source" if files else rule
    if not files:
        files = {label: split_class(members, rule, name, label) for label, members in _classes(found).items()}
    labels = list(select(sorted(files))) if select else sorted(files)
    kept = [_capped(files[label], cap, name, label) for label in labels]
    classes = [ClassPlan(label, len(train), len(test)) for label, (train, test) in zip(labels, kept, strict=True)]
    for entry in classes:
        if not (entry.train and entry.test):
            raise DataError(f"{path}: class {entry.name!r} lacks train or test images.", _LAYOUT)
    places = _places(kept)

    def fill(writer: Writer, resolution: int, progress: Progress) -> None:
        for done, (member, content) in enumerate(archive.visit(places.__contains__)):
            split, index, position = places[member]
            writer.put(split, index, position, decode(content, resolution, f"{path}: {member}")[None])
            progress(done + 1, len(places))

    return Source(classes, origin, file_sha256(path) if path.is_file() else None, fill)


def _capped(files: tuple[list[str], list[str]], cap: int | None, *axes: str) -> tuple[list[str], list[str]]:
    train, test = files
    if cap is None or len(train) <= cap:
        return train, test
    return sorted(shuffled(train, derive_seed("cap", *axes))[:cap]), test


def first_image(path: Path) -> bytes:
    """The content of the first image of an archive."""
    archive = open_archive(path)
    first = _images(archive)[0].member
    return next(content for _, content in archive.visit(lambda member: member == first))


def _images(archive: Archive) -> list[_Found]:
    found = [_Found(name, tuple(name.removeprefix("./").split("/"))) for name in archive.names]
    found = [f for f in found if f.member.lower().endswith(SUFFIXES) and not _hidden(f.parts)]
    if not found:
        raise DataError(f"{archive.path} holds no images.", _LAYOUT)
    return found


def _hidden(parts: tuple[str, ...]) -> bool:
    return "__MACOSX" in parts or any(part.startswith(".") for part in parts)


def _without_shared_folders(found: list[_Found]) -> list[_Found]:
    """Strip the folders above the classes, e.g. `imagenet-r/`."""
    while min(len(f.parts) for f in found) > 2 and len({f.parts[0] for f in found}) == 1:
        found = [_Found(f.member, f.parts[1:]) for f in found]
    if min(len(f.parts) for f in found) < 2:
        raise DataError(f"{found[0].member!r} and others lie in no class folder.", _LAYOUT)
    return found


def _classes(found: list[_Found]) -> dict[str, list[str]]:
    """Class -> members; the class is the first folder, whatever lies below it."""
    classes: dict[str, list[str]] = {}
    for f in found:
        classes.setdefault(f.parts[0], []).append(f.member)
    return classes


def _by_folders(found: list[_Found]) -> Files | None:
    """The split of the folders train and test; None where the first folders are the classes."""
    folders = {f.parts[0].lower(): f.parts[0] for f in found}
    train = next((folders[n] for n in _TRAIN if n in folders), None)
    test = next((folders[n] for n in _TEST if n in folders), None)
    if train is None or test is None:
        return None
    inner = {s: [_Found(f.member, f.parts[1:]) for f in found if f.parts[0] == s] for s in (train, test)}
    if any(len(f.parts) < 2 for part in inner.values() for f in part):
        raise DataError(f"Images of {train}/ or {test}/ lie in no class folder.", _LAYOUT)
    trained, tested = _classes(inner[train]), _classes(inner[test])
    if trained.keys() != tested.keys():
        odd = sorted(trained.keys() ^ tested.keys())[0]
        raise DataError(f"Class {odd!r} is not both in {train}/ and in {test}/.", _LAYOUT)
    return {label: (sorted(trained[label]), sorted(tested[label])) for label in trained}


def _by_cub_list(archive: Archive, found: list[_Found]) -> Files | None:
    """The official split of CUB-200-2011, from its `images.txt` and `train_test_split.txt`."""
    lists = {n.rsplit("/", 1)[-1]: n for n in archive.names if n.rsplit("/", 1)[-1] in _CUB_FILES}
    if len(lists) < len(_CUB_FILES):
        return None
    texts = dict(archive.visit(set(lists.values()).__contains__))
    paths, trained = (dict(_pair(line) for line in texts[lists[n]].decode().splitlines() if line) for n in _CUB_FILES)
    is_train = {paths[number]: flag == "1" for number, flag in trained.items() if number in paths}
    files: Files = {}
    for f in found:
        if (image := "/".join(f.parts[-2:])) in is_train:
            files.setdefault(f.parts[-2], ([], []))[0 if is_train[image] else 1].append(f.member)
    return {label: (sorted(train), sorted(test)) for label, (train, test) in files.items()}


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.partition(" ")
    return first, second.strip()


def _places(files: Sequence[tuple[list[str], list[str]]]) -> dict[str, tuple[Split, int, int]]:
    """Member -> where its pixels go."""
    places: dict[str, tuple[Split, int, int]] = {}
    for index, (train, test) in enumerate(files):
        places.update({member: ("train", index, i) for i, member in enumerate(train)})
        places.update({member: ("test", index, i) for i, member in enumerate(test)})
    return places
