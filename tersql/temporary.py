"""Temporary folders that go in every case, and streams that can be read more than once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# stdin is a pipe that only the owner holds: its end of file is the owner's end, SIGKILL included.
_WATCHDOG = 'read -r _; rm -rf "$1"'


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone after the block, and when this process ends in whatever way."""
    folder = Path(tempfile.mkdtemp(prefix="tersql-"))
    try:
        with subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "tersql-folder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def rereadable(stream: Path) -> Iterator[Path]:
    """`stream` itself where it is a file; else (standard input as "-", a pipe) a copy of what it gives.

    Raises OSError where it cannot be read.
    """
    if str(stream) != "-" and (stream.is_file() or not stream.exists()):
        yield stream
        return
    with temporary_folder() as folder:
        copy = folder / "stream"
        with copy.open("wb") as target:
            if str(stream) == "-":
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with stream.open("rb") as source:
                    shutil.copyfileobj(source, target)
        yield copy
