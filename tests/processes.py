"""Runs of the command in a folder of their own, and what they leave behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")


class Place:
    """A folder for all temporary files of the runs in it; it marks their processes, servers included."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", "tersql.cli", *arguments],
            **{  # type: ignore[call-overload]
                "env": os.environ | {"TMPDIR": str(self.folder), "COLUMNS": "200"},
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                **options,
            },
        )
        return process

    def processes(self) -> dict[int, str]:
        """The command lines of those that live, by process id."""
        mark = f"TMPDIR={self.folder}\0".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(OSError):
                # A backend writes its title over its environment, but lives in the data folder.
                inside = os.readlink(entry / "cwd").startswith(f"{self.folder}/")
                if inside or mark in (entry / "environ").read_bytes() + b"\0":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def matching(self, text: str) -> list[int]:
        return sorted(number for number, command in self.processes().items() if text in command)

    def left(self) -> list[str]:
        """Processes and files that are still there after a while that ending may take."""
        for _ in range(150):
            found = [*self.processes().values(), *os.listdir(self.folder)]
            if not found:
                break
            time.sleep(0.1)
        return found


@contextmanager
def place() -> Iterator[Place]:
    # Short, for sockets are in it; open, for the server of a root is somebody else.
    folder = Path(tempfile.mkdtemp(prefix="tt-", dir="/tmp"))
    folder.chmod(0o777)
    try:
        yield Place(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come about in time"
        time.sleep(0.02)
