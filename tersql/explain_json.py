"""An explanation for programs: one JSON document.

    {"size": …, "starter": …, "baseline": …,
     "kinds": [{"kind": "UPDATE", "statements": 2, "size": 120}, …],
     "transactions": [
       {"index": 1, "changes": 50, "size": 60, "starter": …, "baseline": …, "exact": true, "trouble": null,
        "statements": [
          {"text": "UPDATE …", "size": 47, "kind": "UPDATE", "error": null,
           "rows": [{"schema": "public", "table": "item", "op": "update", "count": 50}],
           "next_best": {"statements": ["UPDATE …"], "size": 301, "kind": "…"},
           "literal": …, "rival": …}]}]}

Sizes are bytes: of a statement with its semicolon, of a transaction with BEGIN and COMMIT.  `kinds` has the most
bytes first, and BEGIN and COMMIT as a kind of their own; their sizes add up to `size`.  `rows` counts what a
statement changed, through triggers and foreign keys too, the most first; `op` is insert, update or delete.
`literal` is the cheapest other way that names every row and value, `rival` the cheapest that a search found and that
is shorter than it; `next_best` is the cheaper one.  Each is null where there is none.  `trouble` and `error` say why
the stream's rows did not come out, and what the server refused.
"""

from __future__ import annotations

import json
from typing import Any, TextIO

from tersql.explain import Alternative, Explanation, StatementStory, TransactionStory


def write_json(explanation: Explanation, file: TextIO) -> None:
    data = {
        "size": explanation.size,
        "starter": explanation.starter,
        "baseline": explanation.baseline,
        "kinds": [{"kind": kind, "statements": count, "size": size} for kind, count, size in explanation.kinds],
        "transactions": [_transaction(one) for one in explanation.transactions],
    }
    json.dump(data, file, ensure_ascii=False, indent=1)
    file.write("\n")


def _transaction(story: TransactionStory) -> dict[str, Any]:
    return {
        "index": story.index,
        "changes": story.changes,
        "size": story.size,
        "starter": story.starter,
        "baseline": story.baseline,
        "exact": story.exact,
        "trouble": story.trouble,
        "statements": [_statement(one) for one in story.statements],
    }


def _statement(story: StatementStory) -> dict[str, Any]:
    return {
        "text": story.text,
        "size": story.size,
        "kind": story.kind,
        "error": story.error,
        "rows": [
            {"schema": table.schema, "table": table.name, "op": op.name.lower(), "count": count}
            for table, op, count in story.counts
        ],
        "next_best": _alternative(story.next_best),
        "literal": _alternative(story.literal),
        "rival": _alternative(story.rival),
    }


def _alternative(one: Alternative | None) -> dict[str, Any] | None:
    return None if one is None else {"statements": list(one.statements), "size": one.size, "kind": one.kind}
