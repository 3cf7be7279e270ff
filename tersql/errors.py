"""What can go wrong with a whole run, each as one clear line; and other libraries' errors made so."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from scratch.errors import ScratchError


class NotReplayable(Exception):
    """A transaction that no statements allowed by the rules reproduce; `str()` is one line."""


class InternalError(Exception):
    """A fault of tersql itself; `str()` is one line that says what and where."""


class InputError(ValueError):
    """A file or name that is given and is not what it should be; `str()` is one line."""


def one_line(error: BaseException) -> str:
    """The message of `error` without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def located(error: BaseException) -> str:
    """The type and message of an unforeseen `error`, and the line of code that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {one_line(error)}{where}"


@contextmanager
def server_errors() -> Iterator[None]:
    """A scratch server that refuses, or has gone, is a ScratchError."""
    try:
        yield
    except psycopg.Error as error:
        reason = error.diag.message_primary or one_line(error)
        raise ScratchError(f"the scratch server fails: {' '.join(reason.split())}") from error
