"""An inverted index of texts: for every short part the texts that have it.

Built once a feature, it answers for any labels which parts all needed texts have, and which no other has, by two
passes over its postings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoder.selection.model import Mask

_INFIX = 3
_AFFIX = 6
# Characters of one feature's texts that are read, and the part of each text that is.
_MAX_CHARACTERS = 400_000
_MAX_TEXT = 2_000
_META = frozenset(".^$*+?()[]{}|\\")
# Classes that PostgreSQL and Python read alike on ASCII; texts with other letters have the server's last word.
_CLASSES = (
    *(r"\d", r"\s", r"\W", "[A-Z]", "[a-z]", "[^ -~]", "."),
    *(r"^\d", r"\d$", "^[A-Z]", "^[a-z]", r"^\d+$", r"^\w+$"),
)

Ints = NDArray[np.int64]


def escape(text: str) -> str:
    """`text` as a regular expression that matches itself."""
    return "".join("\\" + letter if letter in _META else letter for letter in text)


@dataclass(frozen=True, eq=False)
class GramIndex:
    """Regular expressions and the values that match: `codes[starts[p]:starts[p + 1]]` for pattern p."""

    patterns: tuple[str, ...]
    sizes: Ints
    starts: Ints
    codes: Ints

    def sums(self, weights: Ints) -> Ints:
        """For every pattern the sum of the weights of its values."""
        running = np.concatenate(([0], np.cumsum(weights[self.codes])))
        return running[self.starts[1:]] - running[self.starts[:-1]]

    def accepted(self, pattern: int, size: int) -> Mask:
        """The values that match, in a mask of `size` places."""
        mask = np.zeros(size, dtype=np.bool_)
        mask[self.codes[self.starts[pattern] : self.starts[pattern + 1]]] = True
        return mask


def gram_index(values: Sequence[str]) -> GramIndex | None:
    """The index of `values`; None where they are too long to read."""
    if not values or sum(map(len, values)) > _MAX_CHARACTERS or max(map(len, values)) > _MAX_TEXT:
        return None
    found = [*_infixes(values), *_affixes(values), *_classes(values)]
    patterns = tuple(text for text, _ in found)
    lengths = np.array([len(codes) for _, codes in found], dtype=np.int64)
    return GramIndex(
        patterns,
        np.array([len(text.encode()) for text in patterns], dtype=np.int64),
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate([codes for _, codes in found]) if found else np.zeros(0, dtype=np.int64),
    )


def _infixes(values: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    """All parts of up to three letters."""
    # A letter that no text has parts them.
    joined = "\0".join(values) + "\0"
    letters = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    owner = np.concatenate(([0], np.cumsum(letters == 0)[:-1]))
    for size in range(1, _INFIX + 1):
        ends = len(letters) - size + 1
        if ends <= 0:
            return
        keys = np.zeros(ends, dtype=np.int64)
        inside = np.ones(ends, dtype=np.bool_)
        for shift in range(size):
            part = letters[shift : shift + ends]
            keys = keys << 21 | part
            inside &= part != 0
        keys, codes = keys[inside], owner[:ends][inside]
        grams, which = np.unique(keys, return_inverse=True)
        pairs = np.unique(which.reshape(-1) * len(values) + codes)
        gram_of, code_of = pairs // len(values), pairs % len(values)
        edges = np.searchsorted(gram_of, np.arange(len(grams) + 1))
        for place, gram in enumerate(grams.tolist()):
            text = "".join(chr(gram >> 21 * (size - 1 - at) & 0x1FFFFF) for at in range(size))
            yield escape(text), code_of[edges[place] : edges[place + 1]]


def _affixes(values: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    """The beginnings and the ends of up to six letters."""
    heads: dict[str, list[int]] = {}
    tails: dict[str, list[int]] = {}
    for code, value in enumerate(values):
        for size in range(1, min(len(value), _AFFIX) + 1):
            heads.setdefault(value[:size], []).append(code)
            tails.setdefault(value[-size:], []).append(code)
    for head, codes in heads.items():
        yield "^" + escape(head), np.array(codes, dtype=np.int64)
    for tail, codes in tails.items():
        yield escape(tail) + "$", np.array(codes, dtype=np.int64)


def _classes(values: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    for text in _CLASSES:
        search = re.compile(text, re.ASCII | re.DOTALL).search
        codes = [code for code, value in enumerate(values) if search(value) is not None]
        if 0 < len(codes) < len(values):
            yield text, np.array(codes, dtype=np.int64)
