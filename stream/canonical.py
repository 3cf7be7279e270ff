"""The session settings under which the text of a value depends on nothing but the value."""

from __future__ import annotations

CANONICAL: dict[str, str] = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "lc_monetary": "C",
    "xmlbinary": "base64",
}
