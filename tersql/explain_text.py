"""An explanation in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from stream.model import Op, Value
from tersql.explain import Alternative, Explanation, RowStory, StatementStory, TransactionStory

VERBS = {Op.INSERT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}
# Characters of an alternative or a value that are shown.
_ALTERNATIVE = 200
_VALUE = 40
# Control characters as the pictures that Unicode has of them; line breaks and tabs stay.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}


def transaction_text(story: TransactionStory, *, rows: int) -> Group:
    """One transaction: each statement, what it did, with `rows` of its rows, and the next best."""
    title = f"transaction {story.index}: {story.size} bytes, baseline {story.baseline}, starter {story.starter}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    if story.trouble is not None:
        parts.append(Text(f"not exact: {story.trouble}", style="bold red"))
    for statement in story.statements:
        parts.append(Syntax(visible(statement.text), "postgresql", word_wrap=True, background_color="default"))
        parts += _told(statement, rows)
    return Group(*parts)


def _told(statement: StatementStory, rows: int) -> Iterator[Text]:
    if statement.error is not None:
        yield Text(f"  fails: {statement.error}", style="red")
        return
    yield Text(f"  {statement.size} bytes; {counts(statement)}", style="dim")
    for row in statement.rows[:rows]:
        yield Text(f"    {row_text(row)}", style="dim", overflow="ellipsis", no_wrap=True)
    if rows and len(statement.rows) > rows:
        yield Text(f"    and {len(statement.rows) - rows} more", style="dim")
    yield Text(f"  {next_best(statement)}", style="dim")


def counts(statement: StatementStory) -> str:
    """How many rows of which tables."""
    told = [f"{count} {'row' if count == 1 else 'rows'} of {t} {VERBS[op]}" for t, op, count in statement.counts]
    return ", ".join(told) or "no row"


def next_best(statement: StatementStory) -> str:
    best = statement.next_best
    if best is None:
        return "no other way was found"
    return f"next best: {best.size} bytes ({best.kind}): {cut(text_of(best), _ALTERNATIVE)}"


def text_of(alternative: Alternative) -> str:
    return ";".join(alternative.statements)


def cut(text: str, length: int) -> str:
    return visible(text if len(text) <= length else text[: length - 1] + "…")


def visible(text: str) -> str:
    """`text` with nothing in it that a terminal would obey or a page could not hold."""
    return text.translate(_PICTURES)


def row_text(row: RowStory) -> str:
    """`+ id=3: a=1, b=x`, `- id=3`, `~ id=3: a 1 → 2`."""
    sign = {Op.INSERT: "+", Op.DELETE: "-", Op.UPDATE: "~"}[row.op]
    key = ", ".join(f"{name}={value_text(value)}" for name, value in row.key)
    cells = [_cell(row.op, *cell) for cell in row.cells] if row.op is not Op.DELETE else []
    return f"{sign} {row.table.name} {key}" + (f": {', '.join(cells)}" if cells else "")


def _cell(op: Op, name: str, before: Value, after: Value) -> str:
    if op is Op.UPDATE:
        return f"{name} {value_text(before)} → {value_text(after)}"
    return f"{name}={value_text(after)}"


def value_text(value: Value) -> str:
    return "NULL" if value is None else cut(value, _VALUE)


def kinds_table(explanation: Explanation) -> Table:
    """Bytes by kind of statement, and the totals."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("kind")
    for name in ("statements", "bytes", "share"):
        table.add_column(name, justify="right")
    rows: Sequence[tuple[str, int, int]] = explanation.kinds
    for kind, count, size in rows:
        table.add_row(kind, str(count), str(size), f"{100 * size / explanation.size:.1f} %")
    yardsticks = f"baseline {explanation.baseline}, starter {explanation.starter}"
    table.add_row("total", "", str(explanation.size), yardsticks, style="bold")
    return table
