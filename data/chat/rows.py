"""The rows of the team chat."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from data.make import Rows
from data.words import FAMILY, GIVEN, NOUNS, ascii_word, day, maybe, moment, sentence, skewed

TEAMS = (
    (1, "atelier", "free", None, {"emoji": ["👍", "🎉"], "retention": 365}),
    (2, "werk-3", "team", 120, {"emoji": ["👍"], "retention": None}),
    (3, "l'équipe", "team", 60, {"emoji": [], "retention": 90, "sso": {"issuer": "https://id.example"}}),
)
ZONES = ("UTC", "Europe/Paris", "Europe/Oslo", "America/Lima", "Asia/Tokyo")
RANKS = ("member", "member", "guest", "steward", "owner")
EMOJI = ("👍", "❤", "🎉", "eyes", "+1", "tada")
OPENED, TODAY = date(2023, 6, 1), date(2024, 8, 31)


def tables() -> Iterator[Rows]:
    rng = random.Random(20244)
    yield "team", ("team_id", "handle", "plan", "seats", "defaults"), TEAMS
    accounts = [account(rng, number) for number in range(1, 221)]
    yield (
        "account",
        (
            "account_id",
            "team_id",
            "nick",
            "email",
            "rank",
            "is_bot",
            "zone",
            "created",
            "seen",
            "muted_words",
        ),
        accounts,
    )
    team_of = {int(str(row[0])): int(str(row[1])) for row in accounts}
    members = {team: [number for number, own in team_of.items() if own == team] for team in (1, 2, 3)}
    rooms = {room: skewed(rng, (2, 1, 3), 1.3) for room in range(1, 61)}
    seats = {
        room: rng.sample(members[team], 3 + int(len(members[team]) / 2 * rng.random() ** 2))
        for room, team in rooms.items()
    }
    messages = conversation(rng, seats)
    last = {int(str(row[1])): int(str(row[0])) for row in messages}
    counts = Counter(int(str(row[1])) for row in messages)
    yield (
        "room",
        (
            "room_id",
            "team_id",
            "name",
            "about",
            "secret",
            "archived",
            "messages",
            "last_message",
            "creator",
        ),
        [
            (
                room,
                team,
                f"{NOUNS[room % 40]}{'-team' if room > 40 else ''}",
                maybe(rng, 0.6, sentence(rng)),
                rng.random() < 0.25,
                rng.random() < 0.15,
                counts[room],
                last.get(room),
                rng.choice(seats[room]),
            )
            for room, team in rooms.items()
        ],
    )
    yield (
        "seat",
        ("room_id", "account_id", "colour", "pinned", "sort_order", "read_up_to", "notify"),
        [
            (
                room,
                number,
                rng.choice(("#808080", "#808080", "#ff4500", "#00aa55")),
                rng.random() < 0.12,
                maybe(rng, 0.8, rng.randrange(1, 90)),
                maybe(rng, 0.85, rng.randrange(1, 2501)),
                skewed(rng, ("mentions", "all", "none")),
            )
            for room, numbers in seats.items()
            for number in sorted(numbers)
        ],
    )
    yield (
        "message",
        (
            "message_id",
            "room_id",
            "sender",
            "reply_to",
            "subject",
            "body",
            "sent_at",
            "edited_at",
            "flags",
            "meta",
        ),
        messages,
    )
    yield (
        "reaction",
        ("message_id", "account_id", "emoji"),
        [(1 + int(2500 * rng.random() ** 0.8), rng.randrange(1, 221), skewed(rng, EMOJI)) for _ in range(1200)],
    )
    yield (
        "mention",
        ("message_id", "account_id", "seen"),
        [
            (*pair, rng.random() < 0.7)
            for pair in sorted({(rng.randrange(1, 2501), 1 + int(220 * rng.random() ** 1.5)) for _ in range(600)})
        ],
    )
    yield (
        "upload",
        ("token", "message_id", "filename", "size", "checksum", "uploaded_on"),
        [
            (
                UUID(int=rng.getrandbits(128)),
                maybe(rng, 0.75, rng.randrange(1, 2501)),
                f"{rng.choice(NOUNS)} {rng.choice(('v2', 'final', '(1)', 'März'))}"
                f".{rng.choice(('pdf', 'png', 'zip', 'PNG'))}",
                int(9_000_000 * rng.random() ** 3) + 200,
                maybe(rng, 0.8, rng.randbytes(8)),
                day(rng, OPENED, TODAY),
            )
            for _ in range(200)
        ],
    )
    yield (
        "ops.daily",
        ("day", "team_id", "sent", "senders", "share"),
        [
            (
                OPENED + timedelta(days=7 * week),
                team,
                sent := rng.randrange(1, 400),
                1 + sent // 9,
                maybe(rng, 0.9, Decimal(rng.randrange(1, 9000)) / 10000),
            )
            for week in range(60)
            for team in (1, 2, 3)
        ],
    )


def account(rng: random.Random, number: int) -> tuple[object, ...]:
    given, family = rng.choice(GIVEN), rng.choice(FAMILY)
    bot = rng.random() < 0.08
    created = moment(rng, OPENED, date(2024, 6, 1), 1.5)
    nick = f"{ascii_word(given)}{number}" + ("-bot" if bot else "")
    return (
        number,
        skewed(rng, (2, 1, 3), 1.4),
        nick,
        f"{given[:1].lower()}.{ascii_word(family)}@{rng.choice(('chat', 'mail'))}.example",
        skewed(rng, RANKS),
        bot,
        skewed(rng, ZONES, 1.5),
        created,
        maybe(rng, 0.85, max(created, moment(rng, date(2024, 1, 1), TODAY, 0.5))),
        rng.sample(NOUNS, int(3 * rng.random() ** 3)),
    )


def conversation(rng: random.Random, seats: dict[int, list[int]]) -> list[tuple[object, ...]]:
    """2,500 messages in order of time; a fifth of them answers an earlier one of the room."""
    rows: list[tuple[object, ...]] = []
    earlier: dict[int, list[int]] = {room: [] for room in seats}
    rooms = list(seats)
    start = datetime(2023, 6, 1, tzinfo=UTC)
    times = sorted(start + timedelta(seconds=int(39_400_000 * rng.random() ** 0.7)) for _ in range(2500))
    for number, sent in enumerate(times, 1):
        room = skewed(rng, rooms)
        reply = rng.choice(earlier[room]) if earlier[room] and rng.random() < 0.2 else None
        earlier[room].append(number)
        edited = maybe(rng, 0.08, sent + timedelta(minutes=rng.randrange(1, 300)))
        meta = maybe(rng, 0.15, {"client": rng.choice(("web", "ios", "cli")), "links": rng.randrange(4)})
        rows.append(
            (
                number,
                room,
                skewed(rng, seats[room], 1.5),
                reply,
                rng.choice(("", "", f"re: {rng.choice(NOUNS)}")),
                sentence(rng),
                sent,
                edited,
                f"{rng.choice((0, 0, 2, 4, 8)):03b}".zfill(4)[:3] + ("1" if edited else "0"),
                meta,
            )
        )
    return rows
