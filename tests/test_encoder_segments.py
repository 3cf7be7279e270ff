"""Where a transaction is cut into the runs that single statements most likely wrote."""

from __future__ import annotations

from encoder.segments import MAX_SEGMENTS, Segment, changed_columns, scans, segments
from stream.model import Op, RowChange, TableName, Value

A, B, LOG = (TableName("public", name) for name in ("a", "b", "log"))


def insert(table: TableName, number: int) -> RowChange:
    return RowChange(Op.INSERT, table, None, {"id": str(number), "v": "0", "w": "0"})


def update(table: TableName, number: int, **new: Value) -> RowChange:
    old: dict[str, Value] = {"id": str(number), "v": "0", "w": "0"}
    return RowChange(Op.UPDATE, table, old, old | new)


def delete(table: TableName, number: int) -> RowChange:
    return RowChange(Op.DELETE, table, {"id": str(number), "v": "0", "w": "0"}, None)


def lengths(*changes: RowChange) -> list[int]:
    found = segments(changes)
    # Whatever is cut, nothing is lost and the order stays.
    assert [change for segment in found for change in segment.changes] == list(changes)
    return [len(segment.changes) for segment in found]


def test_nothing_has_no_segments() -> None:
    assert segments([]) == []


def test_tables_and_operations_part_runs() -> None:
    changes = [insert(A, 1), insert(A, 2), insert(B, 1), delete(B, 2), delete(B, 3), update(A, 5, v="1")]
    assert lengths(*changes) == [2, 1, 2, 1]


def test_changes_that_take_turns_belong_together() -> None:
    woven = [change for n in range(4) for change in (insert(LOG, n), update(A, n, v="1"))]
    assert lengths(*woven, delete(B, 1), delete(B, 2)) == [8, 2]


def test_disjoint_columns_part_updates() -> None:
    first = [update(A, n, v="1") for n in range(3)]
    second = [update(A, n, w="1") for n in range(5, 9)]
    assert lengths(*first, *second) == [3, 4]
    # Columns that change in some rows only are no cut.
    assert lengths(update(A, 1, v="1", w="1"), update(A, 2, v="1"), update(A, 3, v="2", w="2")) == [3]


def test_a_row_that_comes_again_starts_a_run() -> None:
    old: dict[str, Value] = {"id": "1", "v": "1", "w": "0"}
    again = RowChange(Op.UPDATE, A, old, old | {"v": "2"})
    assert lengths(update(A, 1, v="1"), update(A, 2, v="1"), again) == [2, 1]


def test_an_order_that_says_little_is_given_up() -> None:
    many = [change for n in range(MAX_SEGMENTS) for change in (insert(A, n), insert(A, n + 50), delete(B, n))]
    assert len(segments(many)) <= MAX_SEGMENTS
    lengths(*many)


def test_changed_columns() -> None:
    assert changed_columns(update(A, 1, v="1", w=None)) == {"v", "w"}
    assert changed_columns(update(A, 1)) == frozenset()
    assert changed_columns(insert(A, 1)) == changed_columns(delete(A, 1)) == frozenset()


def scanned(*places: int) -> list[int]:
    """The lengths of the parts of a run whose rows lie at `places`."""
    changes = tuple(update(A, number, v="1") for number in range(len(places)))
    lie = dict(zip(range(len(places)), places, strict=True))
    found = scans(Segment(changes), lambda change: lie[int((change.old or {})["id"] or 0)])
    assert [change for part in found for change in part.changes] == list(changes)
    return [len(part.changes) for part in found]


def test_a_scan_that_starts_over_is_another_statement() -> None:
    assert scanned(1, 4, 6, 9, 2, 3, 5, 8) == [4, 4]
    assert scanned(1, 2, 3, 4, 5, 6, 7, 8) == [8]


def test_a_row_met_out_of_turn_starts_nothing() -> None:
    assert scanned(1, 2, 3, 4, 90, 5, 6, 7, 8) == [9]


def test_rows_in_no_order_are_one_run() -> None:
    assert scanned(9, 2, 7, 1, 8, 3, 6, 4, 5) == [9]
