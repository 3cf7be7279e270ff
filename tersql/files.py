"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


def require_writable(target: Path) -> None:
    """Raise the OSError, naming `target`, that writing it would end in: better before long work than after."""
    if _is_special(target):
        return
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    folder = target.resolve().parent
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    os.close(handle)
    os.unlink(name)


@contextlib.contextmanager
def written(target: Path) -> Iterator[TextIO]:
    """A text file that takes the name `target` only when the block ends well.

    It is written beside the target and renamed, so that an error leaves what was there before.  What is no
    ordinary file (a device, a pipe) is written to as it is; a link stays one.
    """
    if _is_special(target):
        with target.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
