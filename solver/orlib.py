"""OR-Library's text formats for set covering (J. E. Beasley, 1990).

scp: the numbers of rows and columns, the column costs, then for each row the number of columns that
cover it and their list.  rail: the numbers of rows and columns, then for each column its cost, the
number of its rows and their list.  All indexes count from 1; rows are our elements, columns our
candidates.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

from solver.problem import Candidate, CoverProblem


def read_scp(text: str) -> CoverProblem:
    """Reads the scp format; raises ValueError when the text is not in it."""
    numbers = _numbers(text)
    rows, columns = next(numbers), next(numbers)
    costs = [next(numbers) for _ in range(columns)]
    covers: list[list[int]] = [[] for _ in range(columns)]
    for row in range(rows):
        for _ in range(next(numbers)):
            covers[_index(next(numbers), columns)].append(row)
    return _problem(numbers, rows, costs, covers)


def read_rail(text: str) -> CoverProblem:
    """Reads the rail format; raises ValueError when the text is not in it."""
    numbers = _numbers(text)
    rows, columns = next(numbers), next(numbers)
    costs, covers = [], []
    for _ in range(columns):
        costs.append(next(numbers))
        covers.append([_index(next(numbers), rows) for _ in range(next(numbers))])
    return _problem(numbers, rows, costs, covers)


def read_file(path: Path) -> CoverProblem:
    """Reads a file of either format (rail when its name says so), gzipped or not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("ascii")
    return read_rail(text) if path.name.startswith("rail") else read_scp(text)


def write_scp(problem: CoverProblem) -> str:
    """The problem in the scp format; raises ValueError when it is more than plain set covering."""
    _require_plain(problem)
    rows: list[list[int]] = [[] for _ in problem.unique]
    for c, candidate in enumerate(problem.candidates):
        for element in candidate.covers:
            rows[element].append(c + 1)
    lines = [_line([len(rows), len(problem.candidates)]), _line(c.cost for c in problem.candidates)]
    for columns in rows:
        lines += [_line([len(columns)]), _line(columns)]
    return "".join(lines)


def write_rail(problem: CoverProblem) -> str:
    """The problem in the rail format; raises ValueError when it is more than plain set covering."""
    _require_plain(problem)
    lines = [_line([len(problem.unique), len(problem.candidates)])]
    for candidate in problem.candidates:
        rows = [element + 1 for element in sorted(candidate.covers)]
        lines.append(_line([candidate.cost, len(rows), *rows]))
    return "".join(lines)


def _numbers(text: str) -> Iterator[int]:
    """The numbers of the text; running out of them is a ValueError."""
    yield from map(int, text.split())
    raise ValueError("the text ends too early")


def _index(number: int, size: int) -> int:
    if not 1 <= number <= size:
        raise ValueError(f"index {number} is not within 1..{size}")
    return number - 1


def _problem(numbers: Iterator[int], rows: int, costs: list[int], covers: list[list[int]]) -> CoverProblem:
    try:
        extra = next(numbers)
    except ValueError:
        candidates = zip(costs, covers, strict=True)
        return CoverProblem(tuple(Candidate(cost, frozenset(c)) for cost, c in candidates), (False,) * rows)
    raise ValueError(f"the text goes on after its end: {extra}")


def _require_plain(problem: CoverProblem) -> None:
    plain = all(c == Candidate(c.cost, c.covers) for c in problem.candidates)
    if not plain or any(problem.unique) or problem.precedence:
        raise ValueError("the format holds plain set covering only")


def _line(numbers: Iterable[int]) -> str:
    return " " + " ".join(map(str, numbers)) + " \n"
