"""Names, words and skewed draws that the sample workloads share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GIVEN = _words(
    """
    Ada Bruno Chloé Dmitri Elif Fatima Günther Hana Ingrid João Kwame Léa Marek Noor Olga Pedro Quinn
    Rosa Søren Tomás Uma Vera Wen Ximena Yusuf Zoë Anil Birgit Carlos Dunja Esra Femke Gita Henrik Ilse
    Jakub Katya Luís Mai Nils
    """
)
FAMILY = _words(
    """
    Almeida Bergström Castro Dvořák Eriksen Fischer García Haddad Ivanova Janssen Kowalski Lindqvist
    Müller Nakamura O'Brien Petrov Quiroga Rossi Schäfer Takács Ueda Virtanen Weiß Xu Yilmaz Zając
    Nováková D'Angelo Okafor Moreau Silva Hansen Popescu Keller Brandt
    """
)
NOUNS = _words(
    """
    anchor basket candle drawer engine fabric garden hammer island jacket kettle lantern mirror needle
    orchard pepper quilt ribbon saddle teapot umbrella velvet window yarn zipper bridge copper feather
    glacier harbour ladder marble notebook pillow river signal timber valley whistle bottle
    """
)
ADJECTIVES = _words(
    """
    amber bright crisp deep early faded gentle hollow ivory jolly keen light mellow narrow open plain
    quiet rustic silver tall upper vivid warm young blue green heavy round small wide
    """
)
VERBS = _words(
    """
    check move ship fold paint clean order review split merge close plan draft test mount paste label
    sort weigh bring
    """
)
CITIES = _words(
    """
    Aarhus Bergen Córdoba Dresden Évora Faro Graz Helsinki Ioannina Jyväskylä Kraków Lyon Malmö Nantes
    Oulu Porto Reykjavík Sibiu Turku Utrecht Vigo Wrocław Zürich
    """
)


def skewed(rng: random.Random, items: Sequence[T], power: float = 2.0) -> T:
    """One of `items`, the first ones far more often; `power` 1 is even."""
    return items[int(len(items) * rng.random() ** power)]


def person(rng: random.Random) -> str:
    return f"{rng.choice(GIVEN)} {rng.choice(FAMILY)}"


def ascii_word(text: str) -> str:
    """`text` in lower-case ASCII letters, digits and hyphens."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


def title(rng: random.Random) -> str:
    return f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}".capitalize()


def sentence(rng: random.Random) -> str:
    """A few words with the punctuation that people and quoting rules trip over."""
    text = f"{rng.choice(VERBS)} the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
    if rng.random() < 0.4:
        text += f" {rng.choice(('and', 'then', '—', 'or'))} {rng.choice(VERBS)} {rng.choice(NOUNS)}s"
    ending = rng.choice((".", "!", "?", "…", " (it's urgent)", "; 100% sure.", ' as "agreed".', "."))
    return text.capitalize() + ending


def day(rng: random.Random, first: date, last: date, power: float = 1.0) -> date:
    """A day from `first` to `last`; with `power` below 1 rather a late one."""
    return first + timedelta(days=int(((last - first).days + 1) * rng.random() ** power))


def moment(rng: random.Random, first: date, last: date, power: float = 1.0) -> datetime:
    """A UTC time on such a day, mostly in office hours, to the second."""
    seconds = int(rng.triangular(6 * 3600, 22 * 3600, 11 * 3600))
    return datetime.combine(day(rng, first, last, power), datetime.min.time(), UTC) + timedelta(seconds=seconds)


def maybe(rng: random.Random, share: float, value: T) -> T | None:
    """`value` in `share` of all cases, else None."""
    return value if rng.random() < share else None
