"""Opens a stream by path: plain or gzip, told apart by the first bytes; refuses other formats by name."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import cast

from stream.model import StreamError, Transaction
from stream.wal2json import read_wal2json

_GZIP = b"\x1f\x8b"
_OTHER_COMPRESSIONS = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}

# What is likely to be given by mistake, by its first line that is not blank; first match wins.
_OTHER_FORMATS = (
    (rb"PGDMP", "an archive of pg_dump"),
    (rb"[^\n]*\x00", "binary (a stream of pgoutput is captured from its slot)"),
    (rb"BEGIN( \d+)?\s*$|table \S.*: (INSERT|UPDATE|DELETE|TRUNCATE):", "the text of test_decoding"),
    (rb'\s*\{\s*$|(?!.*"action")\s*\{.*"change"\s*:', "wal2json format-version 1"),
    (rb"\s*lsn\s*\|\s*xid\s*\|\s*data", "a table of psql (print the column data alone, with psql -At)"),
    (rb"\s*\[", "a JSON array"),
    (rb"\s*(--|/\*|[A-Za-z])", "text that is not JSON"),
)


def open_stream(path: Path | str) -> Iterator[Transaction]:
    """The transactions of the stream at `path`, or of standard input for "-", one at a time.

    The file is opened at the first transaction and closed after the last.  Raises OSError where
    it cannot be read, and StreamError, naming the line, for what it holds.
    """
    with ExitStack() as stack:
        if str(path) == "-":
            file = cast(BufferedReader, sys.stdin.buffer)
        else:
            file = stack.enter_context(open(path, "rb"))
        head = file.peek(8)
        for magic, name in _OTHER_COMPRESSIONS.items():
            if head.startswith(magic):
                raise StreamError(1, f"the stream is compressed with {name}: decompress it first")
        if head.startswith(_GZIP):
            yield from read_wal2json(_known_format(_decompressed(stack.enter_context(gzip.open(file)))))
        else:
            yield from read_wal2json(_known_format(file))


def _decompressed(lines: Iterable[bytes]) -> Iterator[bytes]:
    number = 1
    try:
        for line in lines:
            yield line
            number += 1
    except EOFError:
        raise StreamError(number, "the gzip file is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise StreamError(number, f"the gzip file is damaged ({error})") from None


def _known_format(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines as they are, unless the first that is not blank shows another format."""
    rest = iter(lines)
    skipped: list[bytes] = []
    for line in rest:
        skipped.append(line)
        if line.strip():
            break
    for pattern, name in _OTHER_FORMATS:
        if skipped and re.match(pattern, skipped[-1]):
            raise StreamError(len(skipped), f"this is {name}, not wal2json format-version 2 (JSON lines)")
    return chain(skipped, rest)
