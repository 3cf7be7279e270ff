"""The rows of the network inventory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from data.make import Rows
from data.words import CITIES, NOUNS, ascii_word, day, maybe, moment, sentence, skewed

OPENED, TODAY = date(2018, 2, 1), date(2025, 1, 31)
PHASES = ("active", "active", "staged", "planned", "failing", "retired")
BRANDS = ("Nordlicht", "Société Câble", "Hexa & Co", "Zenit", "O'Hara Networks", "Yotta")
SPEEDS = {
    "copper": (100, 1000, 1000, 2500),
    "fibre": (1000, 10000, 40000),
    "radio": (300, 866),
    "virtual": (None,),
}


def mac(rng: random.Random) -> str:
    return ":".join(f"{byte:02x}" for byte in (2, 30, 87, *(rng.randrange(256) for _ in range(3))))


def tables() -> Iterator[Rows]:
    rng = random.Random(20243)
    yield (
        "area",
        ("area_id", "within", "code", "place", "lat", "lon"),
        [
            (
                number,
                None if number <= 3 else 1 + (number - 2) // 3,
                f"{ascii_word(CITIES[number % 23])[:3].upper()}{number:02}",
                f"{CITIES[number % 23]}, hall {number % 4}",
                maybe(rng, 0.8, round(36 + 25 * rng.random(), 5)),
                round(24 * rng.random() - 6, 4),
            )
            for number in range(1, 31)
        ],
    )
    cabinets = [
        (
            area,
            letter,
            number,
            rng.choice((42, 42, 42, 24, 48)),
            maybe(rng, 0.7, 500 * rng.randrange(4, 16)),
            rng.random() < 0.8,
        )
        for area in range(4, 31)
        for letter in "ABC"[: 1 + area % 3]
        for number in range(1, 3 + area % 4)
    ]
    yield "cabinet", ("area_id", "row_letter", "number", "units", "max_watts", "locked"), cabinets
    yield (
        "maker",
        ("maker_id", "brand", "support_url", "oui"),
        [
            (
                number,
                brand,
                maybe(rng, 0.6, f"https://{ascii_word(brand)}.example/support?lang=en"),
                [mac(rng) for _ in range(number % 3)],
            )
            for number, brand in enumerate(BRANDS, 1)
        ],
    )
    yield (
        "model",
        ("model_id", "maker_id", "part", "height", "watts", "end_of_sale"),
        [
            (
                number,
                1 + number % 6,
                f"{'XSRW'[number % 4]}{rng.randrange(10, 99)}-{rng.choice((8, 24, 48))}{rng.choice(('', 'P', 'F'))}",
                rng.choice((1, 1, 2, 4)),
                maybe(rng, 0.9, Decimal(rng.randrange(200, 9000)) / 10),
                maybe(rng, 0.4, day(rng, OPENED, TODAY)),
            )
            for number in range(1, 31)
        ],
    )
    boxes = [appliance(rng, number, cabinets) for number in range(1, 361)]
    ports = [row for box in range(1, 361) for row in box_ports(rng, box)]
    counts = Counter(row[0] for row in ports)
    yield (
        "appliance",
        (
            "appliance_id",
            "hostname",
            "model_id",
            "area_id",
            "row_letter",
            "cabinet_no",
            "lowest_unit",
            "phase",
            "serial_no",
            "bought",
            "warranty",
            "managed_at",
            "extra",
            "port_count",
        ),
        [(*row, counts[row[0]]) for row in boxes],
    )
    yield (
        "port",
        ("port_id", "appliance_id", "label", "kind", "speed_mbit", "mac", "enabled", "mtu", "vlans"),
        [(number, *row) for number, row in enumerate(ports, 1)],
    )
    ends = rng.sample(range(1, len(ports) + 1), 1100)
    yield (
        "link",
        ("a_port", "b_port", "metres", "sheath", "laid"),
        [
            (
                min(pair),
                max(pair),
                maybe(rng, 0.8, Decimal(rng.randrange(50, 9000)) / 100),
                maybe(rng, 0.7, skewed(rng, ("grey", "blue", "yellow", "violet, shielded"))),
                maybe(rng, 0.6, day(rng, OPENED, TODAY)),
            )
            for pair in zip(ends[::2], ends[1::2], strict=True)
        ],
    )
    yield (
        "subnet",
        ("subnet_id", "net", "area_id", "vlan", "purpose", "phase"),
        [
            (
                number,
                f"2001:db8:{number:x}::/48" if number % 7 == 0 else f"10.{number % 12}.{number}.0/{24 + number % 3}",
                maybe(rng, 0.85, rng.randrange(1, 31)),
                maybe(rng, 0.7, 100 + rng.randrange(60)),
                skewed(rng, ("", "office", "storage", "guest wifi", "voice & video")),
                skewed(rng, PHASES),
            )
            for number in range(1, 121)
        ],
    )
    yield (
        "address",
        ("address_id", "ip", "subnet_id", "port_id", "dns", "leased_until", "floating"),
        [address(rng, number, len(ports)) for number in range(1, 1001)],
    )
    yield (
        "incident",
        ("incident_id", "appliance_id", "opened", "outage", "severity", "summary"),
        [
            (
                number,
                maybe(rng, 0.9, skewed(rng, range(1, 361))),
                moment(rng, date(2022, 1, 1), TODAY, 0.6),
                maybe(rng, 0.7, timedelta(minutes=5 * rng.randrange(1, 400))),
                1 + int(5 * rng.random() ** 2),
                sentence(rng),
            )
            for number in range(1, 401)
        ],
    )
    yield (
        "reading",
        ("taken", "appliance_id", "celsius", "load"),
        [
            (
                moment(rng, date(2025, 1, 1), TODAY),
                box,
                maybe(rng, 0.95, round(18 + 30 * rng.random(), 1)),
                Decimal(rng.randrange(0, 9900)) / 100,
            )
            for box in range(1, 361, 2)
            for _ in range(5)
        ],
    )


def appliance(
    rng: random.Random, number: int, cabinets: list[tuple[int, str, int, int, int | None, bool]]
) -> tuple[object, ...]:
    area, letter, cabinet, units, *_ = skewed(rng, cabinets, 1.4)
    mounted = rng.random() < 0.85
    bought = day(rng, OPENED, TODAY)
    extra: dict[str, object] = {
        "owner": rng.choice(("core", "edge", "lab")),
        "asset": f"A-{4000 + 3 * number}",
    }
    if rng.random() < 0.3:
        extra["contract"] = {"level": rng.choice(("gold", "silver")), "hours": rng.choice((4, 8, 24))}
    until = bought + timedelta(days=365 * rng.choice((2, 3, 5)))
    return (
        number,
        maybe(rng, 0.93, f"{rng.choice(('sw', 'rt', 'ap', 'fw'))}-{ascii_word(rng.choice(NOUNS))}-{number:03}"),
        1 + int(30 * rng.random() ** 1.5),
        area,
        letter if mounted else None,
        cabinet if mounted else None,
        rng.randrange(1, units) if mounted else None,
        skewed(rng, PHASES),
        maybe(rng, 0.8, f"{rng.randrange(16**8):08X}"),
        bought,
        maybe(rng, 0.7, f"[{bought},{until})"),
        maybe(rng, 0.75, f"10.{number % 12}.{number % 120 + 1}.{2 + number % 60}"),
        extra,
    )


def box_ports(rng: random.Random, box: int) -> Iterator[tuple[object, ...]]:
    for place in range(2 + int(14 * rng.random() ** 2)):
        kind = skewed(rng, ("copper", "fibre", "radio", "virtual"))
        vlans = sorted(rng.sample(range(100, 160), int(4 * rng.random() ** 2)))
        yield (
            box,
            f"{'lo' if kind == 'virtual' else 'eth' if kind == 'copper' else 'xe'}-0/{place}",
            kind,
            rng.choice(SPEEDS[kind]),
            maybe(rng, 0.7, mac(rng)),
            rng.random() < 0.85,
            maybe(rng, 0.3, rng.choice((1500, 9000))),
            vlans,
        )


def address(rng: random.Random, number: int, ports: int) -> tuple[object, ...]:
    subnet = 1 + int(120 * rng.random() ** 1.3)
    six = subnet % 7 == 0
    ip = (
        f"2001:db8:{subnet:x}::{number:x}/64"
        if six
        else f"10.{subnet % 12}.{subnet}.{1 + number % 62}/{24 + subnet % 3}"
    )
    return (
        number,
        ip,
        subnet,
        maybe(rng, 0.7, rng.randrange(1, ports + 1)),
        rng.choice(("", f"{rng.choice(NOUNS)}{number}.net.example")),
        maybe(rng, 0.25, moment(rng, date(2024, 10, 1), date(2025, 3, 1))),
        rng.random() < 0.05,
    )
