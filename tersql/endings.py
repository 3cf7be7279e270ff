"""How a command ends that cannot go on: one line on standard error, and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from emit.lexer import LexError
from scratch.errors import ScratchError
from stream.capture import CaptureError
from stream.model import StreamError
from tersql.errors import InputError, InternalError, NotReplayable

_FORESEEN = (StreamError, ScratchError, CaptureError, InputError, NotReplayable, InternalError, LexError)


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command; 1 is "not possible", 2 a usage error."""
    typer.echo(f"tersql: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Every foreseeable error as one clear line on standard error."""
    try:
        yield
    except _FORESEEN as error:
        fail(str(error))
    except OSError as error:
        if error.filename is not None:
            fail(f"{error.filename}: {error.strerror}")
        # Standard output is full, or its reader has gone; the interpreter's own flush would say so again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(1) from None
        fail(f"output: {error.strerror or error}")
