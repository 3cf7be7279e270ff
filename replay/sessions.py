"""Sessions under all of which a script owes the same rows: the least usual ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Settings: TypeAlias = Mapping[str, str]

# No style agrees with another on all values: hours alone read the same in two of them.
_STYLES: tuple[Settings, ...] = (
    {"DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard"},
    {"DateStyle": "Postgres, MDY", "IntervalStyle": "iso_8601"},
)
# Far in the east with odd minutes, far in the west (a moment has another date in one of them), and one that changes its
# clocks on other days.
_ZONES = ("Pacific/Chatham", "Etc/GMT+12", "America/New_York")


def odd_sessions(timezone: str | None) -> list[Settings]:
    """The settings of each session; `timezone` is the one promised of all of them."""
    if timezone is not None:
        return [{**style, "TimeZone": timezone} for style in _STYLES]
    return [{**_STYLES[place % len(_STYLES)], "TimeZone": zone} for place, zone in enumerate(_ZONES)]
