"""The command line: thin, and a mirror of the Python API.

Exit codes: 0 good, 1 not (not exact, not allowed, not possible), 2 usage.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from emit.rules import check_script
from emit.size import size as script_size
from encoder.transaction import Strategy
from replay.score import score as script_score
from scratch.session import connect
from stream.capture import capture_script, capture_slot, column_types
from stream.write import write_wal2json
from tersql import compare_report, show
from tersql.check import TIME_LIMIT
from tersql.check import check as run_check
from tersql.compare import STRATEGIES
from tersql.compare import compare as run_compare
from tersql.endings import fail, one_line_errors
from tersql.errors import InputError
from tersql.explain import explain as run_explain
from tersql.explain_json import write_json as write_explanation
from tersql.explain_page import page as explain_page
from tersql.explain_text import kinds_table, transaction_text
from tersql.files import require_writable, written
from tersql.instances import write_instances
from tersql.optimize import Options
from tersql.optimize import optimize as run_optimize
from tersql.options import (
    DEFAULT_JOBS,
    AsJson,
    Database,
    Dump,
    EffortName,
    Jobs,
    JsonFile,
    Output,
    Scratch,
    ScriptFile,
    StreamFile,
    Zone,
    require_origin,
)
from tersql.verify import verify as run_verify

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="The shortest SQL script that replays a PostgreSQL change stream exactly, transaction by transaction.",
)


def _tables() -> Console:
    """Standard output for tables: as wide as they are where it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False)


def _read_script(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


@app.command()
def optimize(
    stream: StreamFile,
    dump: Dump = None,
    database: Database = None,
    scratch: Scratch = None,
    output: Output = None,
    effort: EffortName = "default",
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Safety net; past it the rest is left at literal forms.")
    ] = 120.0,
    jobs: Jobs = DEFAULT_JOBS,
    strategy: Annotated[Strategy, typer.Option(help="How far to go.")] = Strategy.OPTIMAL,
    timezone: Zone = None,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line for every transaction.")] = False,
) -> None:
    """Write the shortest script found that replays STREAM.

    Every transaction of it was run on a fresh restore, as a role that may only read and write rows, and
    compared with the stream.

    Example: tersql optimize stream.jsonl.gz --dump before.sql.gz --timezone UTC -o replay.sql
    """
    require_origin(dump, database)
    with one_line_errors():
        if output is not None:
            require_writable(output)
        with show.progress("searching") as progress:
            options = Options(strategy, effort, time_limit, jobs, timezone, progress)
            result = run_optimize(stream, dump=dump, database=database, scratch=scratch, options=options)
        for fault in result.faults:
            typer.echo(f"tersql: warning: {fault}", err=True)
        if output is not None:
            with written(output) as file:
                file.write(result.script + "\n")
        elif not as_json:
            print(result.script, flush=True)
        if as_json:
            print(show.as_json(result), flush=True)
        else:
            show.console.print(show.summary(result, each=verbose))


@app.command()
def verify(
    script: ScriptFile,
    stream: StreamFile,
    dump: Dump = None,
    database: Database = None,
    scratch: Scratch = None,
    timezone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Prove that SCRIPT replays STREAM: rules, then every transaction's rows in every table.

    Example: tersql verify replay.sql stream.jsonl.gz --dump before.sql.gz --timezone UTC
    """
    require_origin(dump, database)
    with one_line_errors():
        text = _read_script(script)
        report = run_verify(text, stream, dump=dump, database=database, scratch=scratch, timezone=timezone)
    if as_json:
        print(
            json.dumps(
                {
                    "exact": report.exact,
                    "transactions": report.transactions,
                    "violations": [{"line": v.line, "message": v.message} for v in report.violations],
                    "difference": str(report.difference) if report.difference else None,
                }
            )
        )
        raise typer.Exit(0 if report.exact else 1)
    for violation in report.violations:
        typer.echo(f"tersql: line {violation.line}: {violation.message}", err=True)
    if report.difference is not None:
        fail(str(report.difference))
    if report.violations:
        raise typer.Exit(1)
    typer.echo(f"exact: {report.transactions} transactions, {script_size(text)} bytes")


@app.command()
def lint(script: ScriptFile, as_json: AsJson = False) -> None:
    """Check SCRIPT against the rules of a replay, without running it.

    Example: tersql lint replay.sql
    """
    with one_line_errors():
        violations = check_script(_read_script(script))
    if as_json:
        print(json.dumps([{"line": v.line, "message": v.message} for v in violations]))
    else:
        for violation in violations:
            typer.echo(f"{script}:{violation.line}: {violation.message}")
    raise typer.Exit(1 if violations else 0)


@app.command()
def size(scripts: Annotated[list[Path], typer.Argument(help="SQL scripts; - for standard input.")]) -> None:
    """Print the size of each script: bytes without comments and needless whitespace.

    Example: tersql size replay.sql
    """
    with one_line_errors():
        for script in scripts:
            count = script_size(_read_script(script))
            typer.echo(f"{count}" if len(scripts) == 1 else f"{count}\t{script}")


@app.command()
def score(
    script: ScriptFile,
    baseline: Annotated[int, typer.Option("--baseline", "-b", min=1, help="Bytes of the baseline.")],
    known: Annotated[int, typer.Option("--known", "-k", min=1, help="Bytes of the shortest exact replay known.")],
    as_json: AsJson = False,
) -> None:
    """The score of SCRIPT's size between the baseline (0) and 0.94 of the best known (1). Exactness is verify's.

    Example: tersql score replay.sql --baseline 15570 --known 3741
    """
    with one_line_errors():
        s = script_size(_read_script(script))
        value = script_score(s, baseline, known)
    line = {"score": round(value, 4), "size": s, "baseline": baseline, "known": known}
    typer.echo(json.dumps(line) if as_json else f"{value:.4f}")


@app.command()
def compare(
    workloads: Annotated[
        list[Path],
        typer.Argument(help="Folders with before.sql(.gz) and stream.jsonl(.gz), or files of cover instances."),
    ],
    strategies: Annotated[
        str, typer.Option(metavar="NAME,…", help="Which strategies, with commas between.")
    ] = ",".join(STRATEGIES),
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Safety net for a strategy on one cover problem.")
    ] = 10.0,
    effort: EffortName = "default",
    jobs: Jobs = DEFAULT_JOBS,
    timezone: Zone = None,
    scratch: Scratch = None,
    json_file: JsonFile = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all runs as CSV.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw bytes and gaps against time (anytime curves).")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the cover instances, for other solvers.")
    ] = None,
) -> None:
    """Give the same candidates to every strategy: bytes, proven bounds, gaps, times.

    Example: tersql compare data/shop data/chat --plot compare.png --csv compare.csv
    """
    with one_line_errors():
        for target in (json_file, csv_file, plot):
            if target is not None:
                require_writable(target)
        if plot is not None:
            compare_report.require_plot(plot)
        with show.progress("searching") as progress:
            comparison = run_compare(
                workloads,
                strategies=[name.strip() for name in strategies.split(",")],
                time_limit=time_limit,
                anytime=plot is not None,
                scratch=scratch,
                options=Options(effort=effort, jobs=jobs, timezone=timezone, progress=progress),
            )
        for target, write in ((json_file, compare_report.write_json), (csv_file, compare_report.write_csv)):
            if target is not None:
                with written(target) as file:
                    write(comparison, file)
        if plot is not None:
            compare_report.write_plot(comparison, plot)
        if export is not None:
            write_instances((line.instance for line in comparison.lines), export)
        _tables().print(compare_report.by_transaction(comparison), "", compare_report.totals(comparison))


@app.command()
def check(
    paths: Annotated[list[Path] | None, typer.Argument(help="Workloads, or folders of them; default data.")] = None,
    record: Annotated[Path, typer.Option(metavar="FILE.toml", help="The record to compare with.")] = Path(
        "data/bytes.toml"
    ),
    update: Annotated[bool, typer.Option("--update", help="Write what is found into the record.")] = False,
    effort: EffortName = "default",
    jobs: Jobs = DEFAULT_JOBS,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For each workload; one that it cuts fails.")
    ] = TIME_LIMIT,
    timezone: Zone = None,
    scratch: Scratch = None,
) -> None:
    """Optimize known workloads and fail where a transaction takes more bytes than the record says.

    Example: tersql check data --effort low
    """
    with one_line_errors():
        if update:
            require_writable(record)
        with show.progress("searching") as progress:
            options = Options(effort=effort, time_limit=time_limit, jobs=jobs, timezone=timezone, progress=progress)
            report = run_check(paths or [Path("data")], record, update=update, scratch=scratch, options=options)
        print(report, flush=True)
    raise typer.Exit(0 if report.good else 1)


@app.command()
def explain(
    script: ScriptFile,
    stream: StreamFile,
    dump: Dump = None,
    database: Database = None,
    scratch: Scratch = None,
    timezone: Zone = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows to list for each statement.")] = 3,
    search: Annotated[
        bool, typer.Option("--search", help="Search for other rules than literals, as long as optimize does.")
    ] = False,
    effort: EffortName = "default",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page that needs no network instead.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Tell which statement of SCRIPT accounts for which rows, what it costs, and what the next best would be.

    Example: tersql explain replay.sql stream.jsonl.gz --dump before.sql.gz --html replay.html
    """
    require_origin(dump, database)
    with one_line_errors():
        for target in (html, json_file):
            if target is not None:
                require_writable(target)
        text = _read_script(script)
        out = _tables()
        explanation = run_explain(
            text,
            stream,
            dump=dump,
            database=database,
            scratch=scratch,
            timezone=timezone,
            search=effort if search else None,
            told=None if html is not None else lambda one: out.print(transaction_text(one, rows=rows)),
        )
        if html is not None:
            with written(html) as file:
                file.write(explain_page(explanation, script.stem))
        if json_file is not None:
            with written(json_file) as file:
                write_explanation(explanation, file)
        out.print(kinds_table(explanation))


@app.command()
def capture(
    database: Annotated[str, typer.Option("--database", metavar="DSN", help="A server with wal_level=logical.")],
    slot: Annotated[str | None, typer.Option(help="Read what this pgoutput slot holds.")] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FILE.sql", help="Run this script and capture what it does.")
    ] = None,
    publication: Annotated[str | None, typer.Option(help="The publication that --slot is read through.")] = None,
    consume: Annotated[bool, typer.Option(help="Advance the slot past what was read.")] = False,
    output: Output = None,
) -> None:
    """Write a change stream in the canonical form from a live server.

    Example: tersql capture --database dbname=shop --run changes.sql -o stream.jsonl
    """
    if (slot is None) == (run is None):
        fail("give either --slot NAME or --run FILE.sql", 2)
    with one_line_errors():
        if output is not None:
            require_writable(output)
        transactions = (
            capture_script(database, _read_script(run))
            if run is not None
            else capture_slot(database, slot or "", publication=publication, consume=consume)
        )
        with connect(database) as session:
            types = column_types(session)  # type: ignore[arg-type]
            if output is not None:
                with written(output) as file:
                    write_wal2json(transactions, file, types)
            else:
                write_wal2json(transactions, sys.stdout, types)
                sys.stdout.flush()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _stop(number: int, frame: FrameType | None) -> None:
    """Leave through every `finally`, so that servers and folders go; once."""
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main() -> None:
    for number in _SIGNALS:
        # What the caller has us ignore (nohup, a shell's background job) stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    app()


if __name__ == "__main__":
    main()
