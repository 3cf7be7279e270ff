"""From terms to text: chooses aliases and qualifications, then puts spaces only where tokens need them.

Name resolution follows PostgreSQL: an unqualified name belongs to the innermost query that has a
source with such a column, and is ambiguous if two sources of that query have it.  A reference is
qualified only where the plain name would not resolve to its source; a source gets an alias only where
that is shorter than repeating its name, or where its name is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from emit.literal import identifier
from emit.size import join
from emit.term import Cte, Delete, Insert, Part, Query, Source, SourceKey, Statement, Term, Update, Whole, whole_table

_COUNT, _SUM = "count(*)", "sum(1)"
# Functions with two names.
_SHORTER = {"bool_and": "every"}
_LETTERS = "abcdfghijklmopqrstvwyzenxu"


def render(node: Statement | Query | Term) -> str:
    """The shortest text of `node` under the naming rules above.

    Raises KeyError when a reference names a source that no enclosing query has.
    """
    names: dict[int, str] = {}
    counter = _Writer(names, count=True)
    counter.node(node)
    for scope in counter.scopes:
        _name_sources(scope, counter, names)
    writer = _Writer(names)
    writer.node(node)
    return join(writer.tokens)


@dataclass
class _Scope:
    sources: tuple[Source, ...]
    parent: _Scope | None
    grouped: bool = False
    # UPDATE's target keeps its scope for SET and WHERE, so that it is a source like any other.
    qualified: dict[SourceKey, int] = field(default_factory=dict)

    def find(self, key: SourceKey) -> Source | None:
        return next((source for source in self.sources if source.key == key), None)

    def holders(self, column: str) -> int:
        return sum(column in source.columns for source in self.sources)


def _table_word(source: Source) -> str | None:
    """The name by which an unaliased source is known, if it has one."""
    if source.alias is not None:
        return source.alias
    if not isinstance(source.text, str):
        return None
    return source.text.rsplit(".", 1)[-1] if not source.text.endswith('"') else None


def _name_sources(scope: _Scope, counter: _Writer, names: dict[int, str]) -> None:
    words: dict[str | None, int] = {}
    for source in scope.sources:
        word = _table_word(source)
        words[word] = words.get(word, 0) + 1
    taken_here: set[str] = set()
    for source in scope.sources:
        uses = scope.qualified.get(source.key, 0)
        word = _table_word(source)
        if source.alias is not None:
            continue
        must = not isinstance(source.text, str)
        clash = word in taken_here or (uses and (word is None or counter.shadowed(scope, source, word)))
        if word is not None and not must and not clash:
            cost_of_name = uses * len(word.encode())
            cost_of_alias = uses + 2
            if cost_of_name <= cost_of_alias:
                taken_here.add(word)
                continue
        if not uses and not must and not clash:
            continue
        letter = next(letter for letter in counter.letters() if letter not in counter.used)
        counter.used.add(letter)
        names[id(source)] = letter


class _Writer:
    """Walks a tree, either counting qualified uses or writing tokens."""

    def __init__(self, names: dict[int, str], count: bool = False) -> None:
        self.names = names
        self.count = count
        self.tokens: list[str] = []
        self.scopes: list[_Scope] = []
        self.scope: _Scope | None = None
        self.used: set[str] = set()
        self.deep: list[tuple[_Scope, SourceKey, _Scope]] = []  # (owner, key, scope of use)

    def letters(self) -> Iterator[str]:
        yield from _LETTERS
        for first in _LETTERS:
            for second in _LETTERS:
                yield first + second

    def shadowed(self, owner: _Scope, source: Source, word: str) -> bool:
        """Whether a use of `source` by its table name would meet another source of that name."""
        for at_owner, key, at in self.deep:
            if at_owner is not owner or key != source.key:
                continue
            scope: _Scope | None = at
            while scope is not None:
                if any(_table_word(other) == word and other is not source for other in scope.sources):
                    return True
                if scope is owner:
                    break
                scope = scope.parent
        return False

    # -- nodes

    def node(self, node: Statement | Query | Term) -> None:
        if isinstance(node, Term):
            self.parts(node.parts)
        elif isinstance(node, Query):
            self.query(node)
        elif isinstance(node, Update):
            self.update(node)
        elif isinstance(node, Delete):
            self.delete(node)
        else:
            self.insert(node)

    def put(self, *tokens: str) -> None:
        if not self.count:
            self.tokens.extend(tokens)

    def parts(self, parts: Sequence[Part]) -> None:
        for place, part in enumerate(parts):
            if part == _COUNT:
                after = parts[place + 1] if place + 1 < len(parts) else ""
                self.put(_SUM if self._counts_some(after) else _COUNT)
            elif isinstance(part, str):
                self.put(_SHORTER.get(part, part))
            elif isinstance(part, Query):
                self.query(part)
            elif isinstance(part, Whole):
                self.reference(part.key, None)
            else:
                self.reference(part.key, part.column)

    def _counts_some(self, after: Part) -> bool:
        """Whether a count(*) before `after` counts at least a row, and is a sum of ones."""
        follows = after if isinstance(after, str) else ""
        grouped = self.scope is not None and self.scope.grouped
        return follows.startswith("OVER") or (grouped and not follows.startswith("FILTER"))

    def within(self, sources: tuple[Source, ...], body: Callable[[], None], grouped: bool = False) -> None:
        scope = _Scope(sources, self.scope, grouped)
        self.scopes.append(scope)
        for source in sources:
            if source.alias is not None:
                self.used.add(source.alias)
        self.scope, outer = scope, self.scope
        body()
        self.scope = outer

    def query(self, query: Query) -> None:
        def body() -> None:
            self.put("SELECT")
            if query.distinct:
                self.put("DISTINCT")
            for place, term in enumerate(query.select):
                if place:
                    self.put(",")
                self.parts(term.parts)
                if place < len(query.names) and query.names[place] is not None:
                    self.put(*_output_name(query.names[place] or ""))
            self.from_list("FROM", query.sources)
            self.where(query.where)
            if query.tail is not None:
                self.parts(query.tail.parts)

        self.within(query.sources, body, query.tail is not None and _groups(query.tail))

    def update(self, statement: Update) -> None:
        self.ctes(statement.ctes)

        def body() -> None:
            self.put("UPDATE")
            self.source(statement.target)
            self.put("SET")
            for place, (columns, term) in enumerate(statement.sets):
                if place:
                    self.put(",")
                if len(columns) == 1:
                    self.put(identifier(columns[0]))
                else:
                    self.put("(", ",".join(identifier(name) for name in columns), ")")
                self.put("=")
                self.parts(term.parts)
            self.from_list("FROM", _plain_first(statement.sources))
            self.where(statement.where)
            self.returning(statement.returning)

        self.within((statement.target, *statement.sources), body)

    def delete(self, statement: Delete) -> None:
        self.ctes(statement.ctes)

        def body() -> None:
            self.put("DELETE", "FROM")
            self.source(statement.target)
            self.from_list("USING", statement.sources)
            self.where(statement.where)
            self.returning(statement.returning)

        self.within((statement.target, *statement.sources), body)

    def insert(self, statement: Insert) -> None:
        self.ctes(statement.ctes)
        # The rows do not see the target, so its scope opens only for ON CONFLICT and RETURNING.
        target = statement.target
        self.put("INSERT", "INTO", target.text if isinstance(target.text, str) else "")
        if statement.columns:
            self.put("(", ",".join(identifier(name) for name in statement.columns), ")")
        table = whole_table(statement.rows) if isinstance(statement.rows, Query) else None
        if table is None:
            self.node(statement.rows)
        else:
            self.put("TABLE", table)
        conflict, returning = statement.conflict, statement.returning

        def body() -> None:
            if conflict is not None:
                self.parts(conflict.parts)
            self.returning(returning)

        if conflict is not None or returning is not None:
            self.within((target,), body)

    def ctes(self, ctes: tuple[Cte, ...]) -> None:
        for place, cte in enumerate(ctes):
            self.put("," if place else "WITH", cte.name)
            if cte.columns:
                self.put("(", ",".join(identifier(name) for name in cte.columns), ")")
            self.put("AS", "(")
            self.node(cte.body)
            self.put(")")

    # -- clauses

    def from_list(self, word: str, sources: tuple[Source, ...]) -> None:
        for place, source in enumerate(sources):
            self.put("," if place else word)
            self.source(source)

    def source(self, source: Source) -> None:
        if isinstance(source.text, Query):
            self.put("(")
            self.query(source.text)
            self.put(")")
        elif isinstance(source.text, Term):
            self.parts(source.text.parts)
        else:
            self.put(*(("ONLY",) if source.only else ()), source.text)
        name = source.alias or self.names.get(id(source))
        if name is not None:
            self.put(name)
            if source.alias_columns:
                self.put("(", ",".join(identifier(column) for column in source.alias_columns), ")")

    def where(self, where: Term | None) -> None:
        if where is not None:
            self.put("WHERE")
            self.parts(where.parts)

    def returning(self, returning: Term | None) -> None:
        if returning is not None:
            self.put("RETURNING")
            self.parts(returning.parts)

    # -- references

    def reference(self, key: SourceKey, column: str | None) -> None:
        scope = self.scope
        hidden = False
        while scope is not None:
            source = scope.find(key)
            if source is not None:
                break
            hidden = hidden or (column is not None and scope.holders(column) > 0)
            scope = scope.parent
        else:
            raise KeyError(f"no source {key!r} for column {column!r}")
        assert source is not None
        plain = column is not None and not hidden and scope.holders(column) == 1
        if plain:
            self.put(identifier(column or ""))
            return
        if self.count:
            assert self.scope is not None
            scope.qualified[key] = scope.qualified.get(key, 0) + 1
            self.deep.append((scope, key, self.scope))
            return
        word = source.alias or self.names.get(id(source)) or _table_word(source) or ""
        self.put(word if column is None else f"{word}.{identifier(column)}")


def _plain_first(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """sqlglot 27.29.0 reads no further source after a query or function that comes first in UPDATE's FROM."""
    return tuple(sorted(sources, key=lambda source: not isinstance(source.text, str)))


def _groups(tail: Term) -> bool:
    first = tail.parts[0]
    return isinstance(first, str) and first.startswith("GROUP BY")


def _output_name(name: str) -> tuple[str, ...]:
    return (identifier(name),)
