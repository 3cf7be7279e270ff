"""All ways to lower a selection select the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selection_bed import SCHEMA, Bed

from emit.literal import table_name
from emit.render import render
from emit.term import Delete, Source, Term, Update, negate, op, raw, ref
from encoder.selection.lower import lower
from encoder.selection.model import Path, Selection
from encoder.selection.spelling import make_atom
from scratch.catalog import Catalog
from scratch.database import cloned, with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import TableName

ITEM = TableName("public", "item")


@pytest.fixture(scope="module")
def bed(server: Server) -> Iterator[Bed]:
    with (
        cloned(server.dsn(), "template0", "selection_lower"),
        connect(with_database(server.dsn(), "selection_lower")) as session,
    ):
        session.execute(SCHEMA.encode())
        yield Bed(session)


def path(catalog: Catalog, table: str, *columns: str) -> Path:
    at, found = TableName("public", table), []
    for column in columns:
        key = next(key for key in catalog[at].foreign_keys if key.columns[0] == column)
        found.append(key)
        at = key.target
    return tuple(found)


def selection(*terms: tuple[tuple[Term, Path], ...]) -> Selection:
    return Selection(
        tuple(
            tuple(make_atom(term, frozenset([way]) if way else frozenset()) for term, way in atoms) for atoms in terms
        ),
        0,
    )


def same(bed: Bed, chosen: Selection, where: str, least: int = 1) -> list[str]:
    statements = bed.statements(ITEM, chosen)
    assert len(statements) >= least
    for statement in statements:
        assert bed.deleted(ITEM, statement) == bed.keys(ITEM, where), statement
    return statements


def test_a_parent_is_joined_or_nested(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    chosen = selection(((op(ref(owner, "role"), "=", raw("'guest'")), owner),))
    statements = same(bed, chosen, "WHERE owner_id IN(SELECT id FROM person WHERE role='guest')", 2)
    assert "DELETE FROM item WHERE owner_id IN(SELECT id FROM person WHERE role='guest')" in statements
    assert "DELETE FROM item USING person a WHERE role='guest'AND a.id=owner_id" in statements


def test_a_negated_boolean_of_a_parent_is_compared_with_the_join(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    chosen = selection(((negate(ref(owner, "active")), owner),))
    statements = same(bed, chosen, "WHERE owner_id IN(SELECT id FROM person WHERE NOT active)")
    assert statements[0] == "DELETE FROM item USING person a WHERE(a.id=owner_id)>active"


def test_large_joins_keep_their_condition_bare(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    chosen = selection(((negate(ref(owner, "active")), owner), (op(ref((), "kind"), "<", raw("3")), ())))
    ways = lower(bed.catalog, ITEM, chosen, size_of=lambda name: 1_000_000)
    assert all("=" in way.where.parts for way in ways if way.sources and way.where)


def test_chains_are_joined_nested_or_mixed(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    region = path(bed.catalog, "item", "owner_id", "region_id")
    chosen = selection(
        ((op(ref(owner, "role"), "<>", raw("'guest'")), owner), (op(ref(region, "parent_id"), "=", raw("2")), region))
    )
    same(
        bed,
        chosen,
        "WHERE owner_id IN(SELECT p.id FROM person p JOIN region r ON r.id=region_id "
        "WHERE role<>'guest' AND parent_id=2)",
        3,
    )


def test_a_key_that_is_a_reference_itself_is_skipped(bed: Bed) -> None:
    base = path(bed.catalog, "item", "page_id", "base_ptr_id")
    statements = same(
        bed, selection(((ref(base, "live"), base),)), "WHERE page_id IN(SELECT id FROM base WHERE live)", 2
    )
    assert "DELETE FROM item USING base a WHERE a.id=page_id AND live" in statements
    assert not any("page " in statement or "FROM page" in statement for statement in statements)


def test_composite_keys(bed: Bed) -> None:
    place = path(bed.catalog, "item", "place_region")
    chosen = selection(((op(ref(place, "name"), "~", raw("'-2'")), place),))
    statements = same(bed, chosen, "WHERE(place_region,place_nr)IN(SELECT region_id,nr FROM place WHERE name~'-2')", 2)
    assert (
        "DELETE FROM item WHERE(place_region,place_nr)IN(SELECT region_id,nr FROM place WHERE name~'-2')" in statements
    )


def test_a_disjunction_with_a_parent_that_need_not_be_there_is_nested(bed: Bed) -> None:
    base = path(bed.catalog, "item", "page_id", "base_ptr_id")
    owner = path(bed.catalog, "item", "owner_id")
    kind = op(ref((), "kind"), "=", raw("1"))
    where = "WHERE kind=1 OR page_id IN(SELECT id FROM base WHERE live)"
    statements = same(bed, selection(((kind, ()),), ((ref(base, "live"), base),)), where)
    assert all("USING" not in statement for statement in statements)
    where = "WHERE kind=1 OR owner_id IN(SELECT id FROM person WHERE active)"
    statements = same(bed, selection(((kind, ()),), ((ref(owner, "active"), owner),)), where, 2)
    assert any("USING" in statement for statement in statements)


def test_needed_paths_are_always_joined(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    target = Source((), table_name(*ITEM), tuple(column.name for column in bed.catalog[ITEM].columns))
    chosen = selection(((op(ref((), "kind"), "=", raw("1")), ()),))
    (way,) = lower(bed.catalog, ITEM, chosen, needed=frozenset([owner]))
    update = Update(target, ((("note",), ref(owner, "email")),), way.sources, way.where)
    assert render(update) == "UPDATE item SET note=email FROM person a WHERE a.id=owner_id AND kind=1"


def test_every_row_with_a_needed_path(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    (way,) = lower(bed.catalog, ITEM, Selection(((),), 0), needed=frozenset([owner]))
    assert len(way.sources) == 1
    assert way.where is not None
    (way,) = lower(bed.catalog, ITEM, Selection(((),), 0))
    assert (way.sources, way.where) == ((), None)


def test_another_key_for_the_target(bed: Bed) -> None:
    owner = path(bed.catalog, "item", "owner_id")
    target = Source("t", table_name(*ITEM), tuple(column.name for column in bed.catalog[ITEM].columns))
    chosen = selection(((op(ref((), "kind"), "=", raw("1")), ()), (ref(owner, "active"), owner)))
    for way in lower(bed.catalog, ITEM, chosen, target_key="t"):
        statement = render(Delete(target, way.sources, way.where))
        wanted = bed.keys(ITEM, "WHERE kind=1 AND owner_id IN(SELECT id FROM person WHERE active)")
        assert bed.deleted(ITEM, statement) == wanted
