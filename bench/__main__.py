"""A short form of every bench, as one table that can be compared with an older one.

    python -m bench [FOLDER] [--only recovery,solver] [--against OLDER.json]

writes FOLDER/DATE.json and FOLDER/DATE.md.  `--table FILE.json` measures nothing and takes that table instead.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Table, compared, markdown
from bench.short import SHORT, measured


def measure(names: list[str]) -> Table:
    date = datetime.now(UTC).isoformat(timespec="seconds")
    figures: dict[str, float] = {}
    skipped = []
    for short in SHORT:
        if short.name in names:
            print(f"{short.name} …", file=sys.stderr, flush=True)
            found = measured(short)
            if found is None:
                skipped.append(short.name)
            figures |= found or {}
    return Table(date, figures, tuple(skipped))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [short.name for short in SHORT]
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent / "results")
    parser.add_argument("--only", default=",".join(names), help="comma-separated; all: %(default)s")
    parser.add_argument("--against", type=Path, help="print what is different from this table")
    parser.add_argument("--table", type=Path, help="a table written before, instead of a new one")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"unknown benches: {', '.join(unknown)}")
    try:
        older = None if options.against is None else Table.read(options.against)
        now = None if options.table is None else Table.read(options.table)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if now is None:
        options.folder.mkdir(parents=True, exist_ok=True)
        now = measure(wanted)
        target = options.folder / f"{now.date[:19].replace(':', '')}.json"
        now.write(target)
        target.with_suffix(".md").write_text("\n".join(markdown(now)) + "\n", encoding="utf-8")
        print(target)
    if older is not None:
        print("\n".join(compared(older, now)))
    if now.skipped:
        sys.exit(f"failed: {', '.join(now.skipped)}")


if __name__ == "__main__":
    main()
