"""An explanation as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PostgresLexer  # type: ignore[import-untyped]

from stream.model import Op, Value
from tersql.explain import Alternative, Explanation, RowStory, StatementStory, TransactionStory
from tersql.explain_text import VERBS, counts, cut, text_of

# Rows of one statement, characters of a value and of a statement that are shown.
_ROWS = 50
_VALUE = 120
_STATEMENT = 20_000

_FORMATTER = HtmlFormatter(nowrap=True)
_LEXER = PostgresLexer()


def page(explanation: Explanation, title: str) -> str:
    """The whole page."""
    style = files(__package__).joinpath("explain.css").read_text(encoding="utf-8")
    light = HtmlFormatter(style="xcode").get_style_defs(".sql")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".sql")
    body = "\n".join(
        (
            _summary(explanation, title),
            _chart(explanation.transactions),
            _kinds(explanation),
            *(_transaction(story) for story in explanation.transactions),
        )
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{light}
@media (prefers-color-scheme: dark) {{
{dark}
}}
{style}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _summary(explanation: Explanation, title: str) -> str:
    rows = sum(len(s.rows) for one in explanation.transactions for s in one.statements)
    inexact = [one.index for one in explanation.transactions if not one.exact]
    facts = (
        ("script, bytes", _number(explanation.size)),
        ("baseline, bytes", _number(explanation.baseline)),
        ("starter, bytes", _number(explanation.starter)),
        ("of the baseline", f"{100 * explanation.size / explanation.baseline:.1f} %" if explanation.baseline else "–"),
        ("transactions", _number(len(explanation.transactions))),
        ("row changes", _number(rows)),
    )
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    warning = f'<p class="bad">Not exact: transaction {", ".join(map(str, inexact))}.</p>' if inexact else ""
    return f"<h1>{escape(title)}</h1>\n<dl class=facts>{listed}</dl>{warning}"


_SERIES = ("starter", "baseline", "script")
_BAR, _GROUP = 7, 30


def _chart(stories: Sequence[TransactionStory]) -> str:
    """Three bars for each transaction, on a logarithmic scale; lengths in per cent, so that any width will do."""
    if not stories:
        return ""
    largest = max(max(story.starter, story.baseline, story.size) for story in stories)
    decades = max(1, math.ceil(math.log10(largest)) - 1)

    def x(size: int) -> float:
        return 66 * math.log10(max(size, 10) / 10) / decades

    height = _GROUP * len(stories) + 18
    parts = [f'<svg class=chart width="100%" height="{height}" role="img" aria-label="bytes by transaction">']
    for power in range(1, decades + 2):
        at = f"{x(10**power):.2f}%"
        parts.append(f'<line class=grid x1="{at}" x2="{at}" y1="14" y2="{height}"/>')
        parts.append(f'<text class=tick x="{at}" dx="2" y="10">{_number(10**power)}</text>')
    for place, story in enumerate(stories):
        top = 18 + place * _GROUP
        values = (story.starter, story.baseline, story.size)
        parts.append(f"<g><title>transaction {story.index}: {_bytes_told(values)}</title>")
        for number, (name, value) in enumerate(zip(_SERIES, values, strict=True)):
            y = top + number * (_BAR + 1)
            parts.append(f'<rect class={name} x="0" y="{y}" width="{max(x(value), 0.3):.2f}%" height="{_BAR}"/>')
        end = f"{max(map(x, values)):.2f}%"
        label = f"{story.index}: {_number(story.size)} of {_number(story.baseline)}"
        parts.append(f'<text class=label x="{end}" dx="5" y="{top + 16}">{label}</text></g>')
    parts.append("</svg>")
    legend = "".join(f'<span><i class="{name}"></i>{name}</span>' for name in _SERIES)
    return (
        f"<section><h2>Bytes by transaction</h2><p class=legend>{legend}"
        f"<span class=dim>logarithmic; label: transaction: script of baseline</span></p>{''.join(parts)}</section>"
    )


def _bytes_told(values: Sequence[int]) -> str:
    return ", ".join(f"{name} {_number(value)} bytes" for name, value in zip(_SERIES, values, strict=True))


def _kinds(explanation: Explanation) -> str:
    rows = "".join(
        f"<tr><th scope=row>{escape(kind)}</th><td>{_number(count)}</td><td>{_number(size)}</td>"
        f'<td class=share><div style="width:{100 * size / explanation.size:.1f}%"></div>'
        f"<span>{100 * size / explanation.size:.1f} %</span></td></tr>"
        for kind, count, size in explanation.kinds
    )
    head = "<tr><th>kind</th><th>count</th><th>bytes</th><th>share</th></tr>"
    return f"<section><h2>Bytes by kind of statement</h2><table class=kinds>{head}{rows}</table></section>"


def _transaction(story: TransactionStory) -> str:
    statements = "\n".join(_statement(statement) for statement in story.statements) or "<p class=dim>No statement.</p>"
    trouble = "" if story.trouble is None else f'<p class="bad">Not exact: {escape(story.trouble)}.</p>'
    return (
        f'<section class=tx id="tx{story.index}"><h2>Transaction {story.index} '
        f"<small>{_number(story.size)} bytes · baseline {_number(story.baseline)} · starter {_number(story.starter)} · "
        f"{_number(story.changes)} row changes</small></h2>{trouble}{statements}</section>"
    )


def _statement(statement: StatementStory) -> str:
    if statement.error is not None:
        told = f"<p class=bad>fails: {escape(statement.error)}</p>"
    else:
        told = f"<p><b>{_number(statement.size)} bytes</b> · {escape(counts(statement))}</p>" + _rows(statement.rows)
        told += "".join(_alternatives(statement))
    return f"<article>{_sql(statement.text)}{told}</article>"


def _alternatives(statement: StatementStory) -> Iterator[str]:
    found = ((statement.rival, "next best found"), (statement.literal, "all by literals"))
    shown = [(one, label) for one, label in found if one is not None]
    for one, label in shown:
        yield _alternative(one, label, statement.size)
    if not shown:
        yield "<p class=dim>No other way was found.</p>"


def _alternative(one: Alternative, label: str, size: int) -> str:
    return (
        f"<details><summary>{label}: <b>{_number(one.size)} bytes</b> ({one.size - size:+,})</summary>"
        f"{_sql(text_of(one))}</details>"
    )


def _sql(text: str) -> str:
    return f"<pre class=sql>{highlight(cut(text, _STATEMENT), _LEXER, _FORMATTER).rstrip()}</pre>"


def _rows(rows: Sequence[RowStory]) -> str:
    if not rows:
        return ""
    listed = "".join(f"<li>{_row(row)}</li>" for row in rows[:_ROWS])
    rest = f"<p class=dim>and {_number(len(rows) - _ROWS)} more</p>" if len(rows) > _ROWS else ""
    return f"<details><summary>rows</summary><ul class=rows>{listed}</ul>{rest}</details>"


def _row(row: RowStory) -> str:
    key = ", ".join(f"{escape(name)} {_value(value)}" for name, value in row.key)
    cells = "".join(f"<div>{escape(name)} {_change(row.op, old, new)}</div>" for name, old, new in row.cells)
    return f"<b>{escape(row.table.name)}</b> {key} <i class={row.op.value}>{VERBS[row.op]}</i>{cells}"


def _change(op: Op, before: Value, after: Value) -> str:
    if op is Op.UPDATE:
        return f"<del>{_value(before)}</del> → <ins>{_value(after)}</ins>"
    return f"<del>{_value(before)}</del>" if op is Op.DELETE else f"<ins>{_value(after)}</ins>"


def _value(value: Value) -> str:
    if value is None:
        return "<em>NULL</em>"
    return f"<code>{escape(cut(value, _VALUE))}</code>"


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
