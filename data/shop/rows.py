"""The rows of the shop."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from data.make import Rows
from data.words import ADJECTIVES, CITIES, NOUNS, ascii_word, day, maybe, moment, person, sentence, skewed

COUNTRIES = (
    ("DE", "Germany", "0.19", True),
    ("FR", "France", "0.20", True),
    ("ES", "Spain", "0.21", True),
    ("SE", "Sweden", "0.25", True),
    ("PL", "Poland", "0.23", True),
    ("NO", "Norway", "0.25", False),
    ("CH", "Switzerland", "0.081", False),
    ("GB", "United Kingdom", "0.20", False),
    ("PT", "Portugal", "0.23", True),
    ("CI", "Côte d'Ivoire", "0.18", False),
)
DEPOTS = (("HAM", "Hamburg", "DE", 90000), ("LYS", "Lyon", "FR", 60000), ("GOT", "Göteborg", "SE", 25000))
STATES = ("shipped", "paid", "placed", "returned", "void", "cart")
OPENED, TODAY = date(2021, 3, 1), date(2024, 11, 18)
COLOURS = ("red", "navy", "sand", "moss", "écru")


def cents(rng: random.Random, low: float, high: float) -> Decimal:
    return Decimal(round(100 * (low + (high - low) * rng.random() ** 2))) / 100


def tables() -> Iterator[Rows]:
    rng = random.Random(20241)
    yield "country", ("code", "name", "vat", "in_union"), COUNTRIES
    yield (
        "customer",
        (
            "customer_no",
            "mail",
            "full_name",
            "country",
            "born",
            "joined_on",
            "points",
            "labels",
            "prefs",
            "remark",
        ),
        [customer(rng, number) for number in range(1, 701)],
    )
    yield (
        "category",
        ("cat_id", "parent_cat", "label", "repriced"),
        [
            (
                number,
                None if number <= 6 else 1 + number % 6,
                f"{ADJECTIVES[number]} {NOUNS[number]}s".title(),
                0,
            )
            for number in range(1, 29)
        ],
    )
    articles = [article(rng, number) for number in range(360)]
    yield (
        "article",
        (
            "sku",
            "cat_id",
            "title",
            "price",
            "cost",
            "grams",
            "attrs",
            "discontinued",
            "released",
        ),
        articles,
    )
    prices = {str(row[0]): Decimal(str(row[3])) for row in articles}
    purchases, lines = purchases_and_lines(rng, prices)
    yield (
        "purchase",
        (
            "purchase_id",
            "customer_no",
            "state",
            "placed_at",
            "shipped_at",
            "total",
            "coupon",
        ),
        purchases,
    )
    yield "purchase_line", ("purchase_id", "line_no", "sku", "qty", "unit_price", "rebate_pct"), lines
    skus = list(prices)
    yield (
        "review",
        ("review_id", "sku", "customer_no", "stars", "body", "written", "hidden"),
        [
            (
                number,
                skewed(rng, skus),
                maybe(rng, 0.9, rng.randrange(1, 701)),
                5 - int(5 * rng.random() ** 2),
                maybe(rng, 0.7, sentence(rng)),
                day(rng, OPENED, TODAY),
                rng.random() < 0.04,
            )
            for number in range(1, 521)
        ],
    )
    yield (
        "price_history",
        ("entry_id", "sku", "was", "is_now"),
        [(number, sku, prices[sku] + 2, prices[sku]) for number, sku in enumerate(rng.sample(skus, 40), 1)],
    )
    yield "stock.depot", ("depot_code", "city", "country", "capacity"), DEPOTS
    yield (
        "stock.level",
        ("depot_code", "sku", "on_hand", "reorder_at", "counted_on"),
        [
            (
                depot,
                sku,
                int(180 * rng.random() ** 3),
                maybe(rng, 0.7, 5 * rng.randrange(1, 9)),
                day(rng, date(2024, 1, 1), TODAY),
            )
            for depot, *_ in DEPOTS
            for sku in skus
            if rng.random() < 0.8
        ],
    )
    yield (
        "stock.movement",
        ("depot_code", "sku", "delta", "reason", "booked"),
        [
            (
                skewed(rng, DEPOTS)[0],
                skewed(rng, skus),
                rng.choice((-1, -1, -2, 10, 25)),
                rng.choice(("sale", "sale", "refill", "loss", "count")),
                day(rng, date(2024, 6, 1), TODAY),
            )
            for _ in range(700)
        ],
    )


def customer(rng: random.Random, number: int) -> tuple[object, ...]:
    name = person(rng)
    mail = f"{ascii_word(name)}{number}@{rng.choice(('example.com', 'example.org', 'mail.example'))}"
    joined = day(rng, OPENED, TODAY, 0.8)
    labels = [label for label in ("vip", "wholesale", "late-payer", "newsletter") if rng.random() < 0.18]
    prefs: dict[str, object] = {"lang": rng.choice(("de", "fr", "en", "sv")), "news": rng.random() < 0.5}
    if rng.random() < 0.2:
        prefs["theme"] = {"dark": rng.random() < 0.5, "size": rng.choice((12, 14, 16))}
    return (
        number,
        mail,
        name,
        skewed(rng, COUNTRIES)[0],
        maybe(rng, 0.8, day(rng, date(1948, 1, 1), date(2006, 1, 1))),
        joined,
        int(2000 * rng.random() ** 4),
        labels,
        prefs,
        maybe(rng, 0.12, sentence(rng)),
    )


def article(rng: random.Random, number: int) -> tuple[object, ...]:
    adjective, noun = rng.choice(ADJECTIVES), rng.choice(NOUNS)
    price = cents(rng, 3, 240)
    attrs: dict[str, object] = {"colour": skewed(rng, COLOURS), "pack": rng.choice((1, 1, 1, 6, 12))}
    if rng.random() < 0.3:
        attrs["origin"] = rng.choice(CITIES)
    return (
        f"{noun[:3].upper()}-{1000 + 7 * number}",
        1 + int(28 * rng.random() ** 1.5),
        f"{adjective.title()} {noun}",
        price,
        round(price * Decimal(rng.randrange(45, 80)) / 100, 2),
        maybe(rng, 0.85, 10 * rng.randrange(2, 400)),
        attrs,
        rng.random() < 0.1,
        day(rng, OPENED, TODAY),
    )


def purchases_and_lines(
    rng: random.Random, prices: dict[str, Decimal]
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    purchases: list[tuple[object, ...]] = []
    lines: list[tuple[object, ...]] = []
    skus = list(prices)
    for number, placed in enumerate(sorted(moment(rng, OPENED, TODAY, 0.7) for _ in range(1100)), 1):
        total = Decimal(0)
        for line, sku in enumerate(rng.sample(skus, 1 + int(4 * rng.random() ** 2)), 1):
            quantity, rebate = (
                1 + int(5 * rng.random() ** 3),
                maybe(rng, 0.15, Decimal(rng.choice(("5", "7.5", "10")))),
            )
            lines.append((number, line, sku, quantity, prices[sku], rebate))
            total += round(quantity * prices[sku] * (100 - (rebate or 0)) / 100, 2)
        state = skewed(rng, STATES)
        shipped = placed + timedelta(hours=rng.randrange(8, 240)) if state in ("shipped", "returned") else None
        purchases.append(
            (
                number,
                1 + int(700 * rng.random() ** 1.6),
                state,
                placed,
                shipped,
                total,
                maybe(rng, 0.1, rng.choice(("WELCOME", "AUTUMN-24", "sorry:10"))),
            )
        )
    return purchases, lines
