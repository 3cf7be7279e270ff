"""The rules of a replay script, checked on its text.

A script is a row of `BEGIN; … COMMIT;` groups.  Inside stand INSERT, UPDATE and DELETE only, each with an
optional WITH; they call built-in functions only, and none that reads outside data, server state, the clock
or chance.  What a text cannot show is left to the replay itself: a user's function in attribute notation, a
user's cast or operator, and the strings `now` and `today` where only the column makes them a date.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from emit.builtin_functions import BUILTIN_FUNCTIONS
from emit.lexer import Kind, LexError, Token, tokenize
from emit.names import RESERVED

# All overloads of an allowed name must be harmless.  Volatile functions are not, with the exception of nextval;
# the patterns name the others that read the server's state, its catalogs, files or the session.
BUILTIN_FUNCTIONS_QUERY = r"""
    SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    GROUP BY proname
    HAVING (bool_and(provolatile <> 'v') OR proname = 'nextval')
    AND bool_or(NOT 'internal'::regtype = ANY(proargtypes) AND NOT 'cstring'::regtype = ANY(proargtypes)
        AND prorettype NOT IN ('internal'::regtype, 'cstring'::regtype, 'trigger'::regtype,
            'event_trigger'::regtype, 'language_handler'::regtype, 'fdw_handler'::regtype,
            'index_am_handler'::regtype, 'table_am_handler'::regtype, 'tsm_handler'::regtype))
    AND (proname !~ '^pg_' OR proname ~ '^pg_(typeof|input_is_valid|size_pretty|size_bytes|lsn.*)$')
    AND proname !~ '^(binary_upgrade|brin|currtid|fmgr|plpgsql|has_|inet_client|inet_server|lo_|row_security)'
    AND proname !~ '^(query|table|schema|database|cursor)_to_xml'
    AND proname !~ '^(txid_|mxid_age|to_reg|reg[a-z]*$|acl|.*_validator$|.*description$)'
    AND proname !~ '(send|recv)$'
    AND proname NOT IN ('current_database', 'current_schema', 'current_schemas', 'current_setting',
        'current_user', 'session_user', 'system_user', 'getpgusername', 'getdatabaseencoding',
        'get_current_ts_config', 'version', 'now', 'statement_timestamp', 'transaction_timestamp',
        'format_type', 'oidvectortypes', 'ts_debug', 'ts_parse', 'ts_token_type', 'makeaclitem',
        'unicode_version', 'icu_unicode_version', 'satisfies_hash_partition')
    ORDER BY proname COLLATE "C"
"""

# Words that may stand before a parenthesis without calling anything.
_GRAMMAR_WORDS = """
    between bit by char character coalesce conflict cube dec decimal escape exists extract filter
    float greatest grouping int integer interval json json_array json_arrayagg json_exists json_object
    json_objectagg json_query json_scalar json_serialize json_table json_value least materialized merge_action
    national nchar normalize nullif numeric over overlay position precision real rollup row
    set sets smallint bigint boolean substring time timestamp treat trim values varchar varying xmlattributes
    xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable zone
"""
_GRAMMAR = RESERVED | frozenset(_GRAMMAR_WORDS.split())
_SESSION_NAMES = """
    current_catalog current_date current_role current_schema current_time current_timestamp current_user
    localtime localtimestamp session_user system_user user
"""
_SESSION_WORDS = frozenset(_SESSION_NAMES.split())
_SYSTEM_COLUMNS = frozenset(("cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"))
_CATALOG_TYPES = re.compile(r"reg(class|collation|config|dictionary|namespace|oper|operator|proc|procedure|role|type)")
_CATALOG_SCHEMA = re.compile(r"information_schema|pg_.*")
_MOVING_DATE = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_DATE_TYPES = frozenset(kind for kind in exp.DataType.Type if re.match(r"DATE|TIME|TSRANGE|TSTZ|TSMULTI", kind.name))
_DML = (exp.Insert, exp.Update, exp.Delete)


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule; `line` is the 1-based line of the script."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class ScriptTransaction:
    """The statements of one BEGIN … COMMIT group, without their semicolons; `line` is that of BEGIN."""

    statements: tuple[str, ...]
    line: int


class ScriptError(ValueError):
    """The script is no row of BEGIN … COMMIT groups."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


@dataclass(frozen=True, slots=True)
class _Statement:
    tokens: tuple[Token, ...]
    text: str
    line: int


def split_script(script: str) -> list[ScriptTransaction]:
    """The script's transactions in order.  Raises `ScriptError`."""
    return [
        ScriptTransaction(tuple(statement.text for statement in group), begin.line) for begin, group in _groups(script)
    ]


def check_script(script: str) -> list[Violation]:
    """Every broken rule, in the order of the script; a script that does not fall into groups gives one."""
    try:
        groups = _groups(script)
    except ScriptError as error:
        return [error.violation]
    return [
        Violation(statement.line, message)
        for _, group in groups
        for statement in group
        for message in _complaints(statement)
    ]


def _groups(script: str) -> list[tuple[_Statement, list[_Statement]]]:
    groups: list[tuple[_Statement, list[_Statement]]] = []
    is_open = False
    for statement in _statements(script):
        word = statement.text.upper()
        if not is_open and word != "BEGIN":
            raise ScriptError(Violation(statement.line, "only BEGIN may stand between transactions"))
        if not is_open:
            groups.append((statement, []))
            is_open = True
        elif word == "COMMIT":
            is_open = False
        else:
            groups[-1][1].append(statement)
    if is_open:
        raise ScriptError(Violation(groups[-1][0].line, "BEGIN without COMMIT"))
    return groups


def _statements(script: str) -> Iterator[_Statement]:
    try:
        tokens = tokenize(script)
    except LexError as error:
        raise ScriptError(Violation(_line(script, error.start), str(error))) from error
    first = 0
    for index, token in enumerate(tokens):
        if token.text != ";":
            continue
        if index == first:
            raise ScriptError(Violation(_line(script, token.start), "empty statement"))
        start = tokens[first].start
        text = script[start : token.start].rstrip()
        yield _Statement(tuple(tokens[first:index]), text, _line(script, start))
        first = index + 1
    if first < len(tokens):
        raise ScriptError(Violation(_line(script, tokens[first].start), "statement without a semicolon"))


def _line(script: str, start: int) -> int:
    return script.count("\n", 0, start) + 1


def _complaints(statement: _Statement) -> Iterator[str]:
    try:
        trees = sqlglot.parse(statement.text, dialect="postgres")
    except (SqlglotError, RecursionError) as error:
        yield f"does not parse: {str(error).splitlines()[0]}"
        return
    tree = trees[0]
    if len(trees) != 1 or not isinstance(tree, _DML):
        yield f"{statement.tokens[0].text.upper()} is no INSERT, UPDATE or DELETE"
        return
    yield from _statement_complaints(tree)
    yield from _word_complaints(statement.tokens)
    yield from _call_complaints(statement.tokens, tree)


def _statement_complaints(tree: exp.Expression) -> Iterator[str]:
    for node in tree.walk():
        if isinstance(node, exp.CTE) and not isinstance(node.this, (*_DML, exp.Query, exp.Values, exp.Table)):
            yield f"{node.this.key.upper()} in a WITH"
        elif isinstance(node, exp.Into):
            yield "SELECT INTO"
        elif isinstance(node, exp.Table):
            schema = node.db
            if _CATALOG_SCHEMA.fullmatch(schema) or (not schema and node.name.startswith("pg_")):
                yield f"system catalog {schema + '.' if schema else ''}{node.name}"
        elif isinstance(node, exp.Cast) and _is_moving_date(node):
            yield f"date {node.this.sql('postgres')} depends on the clock"


def _is_moving_date(cast: exp.Cast) -> bool:
    text = cast.this
    return (
        isinstance(text, exp.Literal)
        and text.is_string
        and _MOVING_DATE.search(text.name) is not None
        and any(node.this in _DATE_TYPES for node in cast.to.find_all(exp.DataType))
    )


def _word_complaints(tokens: tuple[Token, ...]) -> Iterator[str]:
    """Words that are forbidden wherever they stand."""
    before = ""
    for token in tokens:
        name = _name(token)
        if token.kind is Kind.PARAM:
            yield f"parameter {token.text}"
        elif name in _SYSTEM_COLUMNS:
            yield f"system column {name}"
        elif token.kind is Kind.WORD and name is not None:
            if name in _SESSION_WORDS and before != ".":
                yield f"{name} depends on the session or the clock"
            elif name == "tablesample":
                yield "TABLESAMPLE draws rows at random"
            elif _CATALOG_TYPES.fullmatch(name):
                yield f"type {name} reads the system catalogs"
        before = token.text


def _call_complaints(tokens: tuple[Token, ...], tree: exp.Expression) -> Iterator[str]:
    """Calls of functions that are not allowed.

    A name before a parenthesis is a call unless grammar says otherwise; the names that the statement gives
    column lists (of aliases, WITH queries and INSERT targets) are taken from the tree and set off by count.
    """
    calls: Counter[str] = Counter()
    for index, token in enumerate(tokens[:-1]):
        name = _name(token)
        if name is None or tokens[index + 1].text != "(":
            continue
        schema = _name(tokens[index - 2]) if index > 1 and tokens[index - 1].text == "." else None
        if schema not in (None, "pg_catalog"):
            calls[f"{schema}.{name}"] += 1
        elif name == "age" and _argument_count(tokens, index + 1) == 1:
            yield "age with one argument depends on the clock"
        elif name not in BUILTIN_FUNCTIONS and (token.kind is Kind.QUOTED or name not in _GRAMMAR):
            calls[name] += 1
    calls.subtract(_column_lists(tree))
    for name, count in calls.items():
        if count > 0:
            yield f"function {name} is not allowed"


def _column_lists(tree: exp.Expression) -> Iterator[str]:
    for node in tree.walk():
        if isinstance(node, exp.TableAlias) and node.columns:
            yield node.name if _is_quoted(node.this) else node.name.lower()
        elif isinstance(node, exp.Schema) and isinstance(node.this, exp.Table):
            table = node.this
            name = table.name if _is_quoted(table.this) else table.name.lower()
            yield f"{table.db}.{name}" if table.db else name


def _is_quoted(node: exp.Expression) -> bool:
    return isinstance(node, exp.Identifier) and bool(node.args.get("quoted"))


def _argument_count(tokens: tuple[Token, ...], opening: int) -> int:
    depth = 0
    count = 1
    for token in tokens[opening:]:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0:
            break
        count += depth == 1 and token.text == ","
    return count


def _name(token: Token) -> str | None:
    """The name that a word or quoted identifier means."""
    if token.kind is Kind.WORD:
        return token.text.lower()
    if token.kind is Kind.QUOTED and token.text[0] == '"':
        return token.text[1:-1].replace('""', '"')
    return None
