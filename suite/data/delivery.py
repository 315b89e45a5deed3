"""What of a data set enters a container: fresh copies under neutral names, and test items in a secret order.

Never hard links: containers that share an inode share locks, inotify events and times. Times, modes and names are
equal whatever the data set.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suite.data.dataset import DataSet
from suite.data.npy import npy_header, npy_size
from suite.data.scenario import Task
from suite.seeds import Counter, shuffled

ITEMS_FILE = "items.npy"
FIXED_TIME = 946_684_800  # 2000-01-01 00:00 UTC
FILE_MODE = 0o444
_FICLONE = 0x40049409  # linux/fs.h; x86 and arm agree
_CHUNK = 4 << 20
_NOT_HERE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}


def write_task(data_set: DataSet, task: Task, dest_dir: Path) -> None:
    """Copy the training images of `task` to `dest_dir`, one `<id:05d>.npy` uint8 [N, H, W, C] per class.

    `dest_dir` is made if absent. Raises FileExistsError when a file is already there.
    """
    dest_dir.mkdir(parents=True, exist_ok=True)
    for name, index in zip(task.ids, task.classes, strict=True):
        _copy(data_set.path("train", index), dest_dir / f"{name:05d}.npy")
    _fix_times(dest_dir)


def write_items(
    data_set: DataSet, class_map: Mapping[int, int], permutation_key: bytes, dest_dir: Path
) -> NDArray[np.int64]:
    """Write the test images of all classes of `class_map` (id -> class index), in one secret order, to `items.npy`.

    Returns the true ids, int64 [N], in that order: for the harness only. Memory is bounded by a few MB.
    """
    items = _items(data_set, class_map)
    return _write_permuted(data_set, class_map, items, _order(len(items), permutation_key), dest_dir)


def write_company(
    data_set: DataSet, class_map: Mapping[int, int], permutation_key: bytes, dest_dir: Path
) -> NDArray[np.int64]:
    """Write some of the same items in other company: another order, and each class in a count of its own.

    Returns int64 [M]: where each of them stood in the request that `write_items` wrote with the same key.
    """
    items = _items(data_set, class_map)
    position = np.empty(len(items), np.int64)
    position[_order(len(items), permutation_key)] = np.arange(len(items))
    chosen = _uneven(items, hmac.digest(permutation_key, b"company/choice", hashlib.sha256))
    order = chosen[_order(len(chosen), hmac.digest(permutation_key, b"company/order", hashlib.sha256))]
    _write_permuted(data_set, class_map, items, order, dest_dir)
    return position.take(order)


def _items(data_set: DataSet, class_map: Mapping[int, int]) -> NDArray[np.int64]:
    """All test items as rows (id, number within the class), int64 [N, 2], ids ascending."""
    rows = [
        np.stack([np.full(count, name), np.arange(count)], axis=1)
        for name in sorted(class_map)
        for count in [data_set.count("test", class_map[name])]
    ]
    return np.concatenate(rows).astype(np.int64)


def _order(count: int, key: bytes) -> NDArray[np.int64]:
    return np.array(shuffled(range(count), key), np.int64)


def _uneven(items: NDArray[np.int64], key: bytes) -> NDArray[np.int64]:
    """Row numbers of a choice that takes between a tenth and nine tenths of each class, at least one."""
    counter, chosen = Counter(key), []
    for name in np.unique(items[:, 0]):
        rows = np.flatnonzero(items[:, 0] == name)
        take = max(1, round(len(rows) * (0.1 + 0.8 * counter.unit())))
        chosen.extend(shuffled(rows.tolist(), hmac.digest(key, str(name).encode(), hashlib.sha256))[:take])
    return np.array(chosen, np.int64)


def _write_permuted(
    data_set: DataSet,
    class_map: Mapping[int, int],
    items: NDArray[np.int64],
    order: NDArray[np.int64],
    dest_dir: Path,
) -> NDArray[np.int64]:
    """Write rows `order` of `items` to `items.npy`: each class is read once, its images scattered to their places."""
    dest_dir.mkdir(parents=True, exist_ok=True)
    path = dest_dir / ITEMS_FILE
    shape = (len(order), *data_set.image_shape)
    place = np.full(len(items), -1, np.int64)
    place[order] = np.arange(len(order))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, npy_size(shape))  # a full disk shows here, not in the middle
        os.pwrite(descriptor, npy_header(shape), 0)
        for name, index in sorted(class_map.items()):
            rows = items[:, 0] == name
            _scatter(data_set, index, place[rows], descriptor, len(npy_header(shape)))
    finally:
        os.close(descriptor)
    _normalise(path)
    _fix_times(dest_dir)
    labels: NDArray[np.int64] = items[order, 0]
    return labels


def _scatter(data_set: DataSet, index: int, places: NDArray[np.int64], out: int, start: int) -> None:
    """Copy test image i of class `index` to item `places[i]` of the open file `out`; -1 leaves it out."""
    shape = data_set.shape("test", index)
    size = shape[1] * shape[2] * shape[3]
    header, step = len(npy_header(shape)), max(1, _CHUNK // size)
    descriptor = os.open(data_set.path("test", index), os.O_RDONLY)
    try:
        for first in range(0, shape[0], step):
            count = min(step, shape[0] - first)
            block = memoryview(os.pread(descriptor, count * size, header + first * size))
            if len(block) != count * size:
                raise OSError(errno.EIO, "file is shorter than its manifest says", str(data_set.path("test", index)))
            for i in range(count):
                if (place := int(places[first + i])) >= 0:
                    os.pwrite(out, block[i * size : (i + 1) * size], start + place * size)
    finally:
        os.close(descriptor)


def _copy(source: Path, dest: Path) -> None:
    """A copy on an inode of its own: a reflink where the file system has them, else inside the kernel."""
    reader = os.open(source, os.O_RDONLY)
    try:
        writer = os.open(dest, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if not _reflink(reader, writer):
                _copy_bytes(reader, writer, os.fstat(reader).st_size)
        finally:
            os.close(writer)
    finally:
        os.close(reader)
    _normalise(dest)


def _reflink(reader: int, writer: int) -> bool:
    try:
        fcntl.ioctl(writer, _FICLONE, reader)
    except OSError as error:
        if error.errno in _NOT_HERE:
            return False
        raise
    return True


def _copy_bytes(reader: int, writer: int, size: int) -> None:
    done = 0
    try:
        while done < size:
            if not (moved := os.copy_file_range(reader, writer, size - done, done, done)):
                break
            done += moved
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    os.lseek(writer, done, os.SEEK_SET)
    while done < size:
        if not (moved := os.sendfile(writer, reader, done, size - done)):
            raise OSError(errno.EIO, "file became shorter while it was copied")
        done += moved


def _normalise(path: Path) -> None:
    path.chmod(FILE_MODE)
    _fix_times(path)


def _fix_times(path: Path) -> None:
    os.utime(path, (FIXED_TIME, FIXED_TIME))
