"""The rows of the page tree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime

from data.make import Rows
from data.words import (
    ADJECTIVES,
    NOUNS,
    VERBS,
    ascii_word,
    day,
    maybe,
    moment,
    person,
    sentence,
    skewed,
    title,
)

LANGUAGES = (
    ("en", "English", None),
    ("de", "Deutsch", "en"),
    ("fr", "Français", "en"),
    ("cs", "Čeština", "de"),
)
KINDS = ("article", "news", "event", "recipe", "folder", "form")
OPENED, TODAY = date(2019, 5, 1), date(2024, 9, 30)
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64)",
    "Mozilla/5.0 (iPhone)",
    "curl/8.5.0",
    "FetchBot/2.1; +http://bot.example",
)


def local(rng: random.Random, power: float = 1.0) -> datetime:
    return moment(rng, OPENED, TODAY, power).replace(tzinfo=None)


def tables() -> Iterator[Rows]:
    rng = random.Random(20242)
    yield "cms.language", ("tag", "endonym", "fallback"), LANGUAGES
    yield (
        "cms.editor",
        ("editor_id", "login", "display_name", "active", "last_login", "roles"),
        [editor(rng, number) for number in range(1, 41)],
    )
    nodes = tree(rng, 700)
    yield (
        "cms.node",
        (
            "node_id",
            "path",
            "depth",
            "child_count",
            "kind",
            "slug",
            "url",
            "heading",
            "lead",
            "live",
            "language",
            "owner_id",
            "first_live",
            "expires",
            "settings",
        ),
        nodes,
    )
    yield (
        "cms.draft",
        ("draft_id", "node_id", "author_id", "saved", "body", "approved"),
        [draft(rng, number, len(nodes)) for number in range(1, 1201)],
    )
    links = sorted({(1 + int(len(nodes) * rng.random()), 1 + int(38 * rng.random() ** 2)) for _ in range(900)})
    uses = Counter(topic for _, topic in links)
    yield (
        "cms.topic",
        ("topic_id", "name", "uses"),
        [
            (number, rng.choice(("", "", "all about ")) + NOUNS[number - 1] + "s", uses[number])
            for number in range(1, 41)
        ],
    )
    yield (
        "cms.node_topic",
        ("node_id", "topic_id", "weight"),
        [(*link, rng.choice((1, 1, 1, 0.5, 0.25, 2))) for link in links],
    )
    yield (
        "cms.picture",
        ("picture_id", "file", "alt", "width", "height", "bytes", "uploaded", "focal"),
        [picture(rng, number) for number in range(1, 261)],
    )
    yield (
        "cms.block",
        ("node_id", "position", "block_type", "picture_id", "content"),
        [
            (
                node,
                10 * place,
                skewed(rng, ("text", "quote", "picture", "table", "embed")),
                maybe(rng, 0.3, rng.randrange(1, 261)),
                sentence(rng),
            )
            for node in range(2, 420)
            for place in range(int(6 * rng.random() ** 1.3))
        ],
    )
    yield (
        "cms.redirect",
        ("from_url", "to_node", "to_url", "permanent", "hits"),
        [
            (
                f"/{rng.choice(('old', 'blog', 'archiv', '2019'))}"
                f"/{VERBS[number % 20]}-{number}.{rng.choice(('html', 'php'))}",
                node := maybe(rng, 0.8, rng.randrange(2, 700)),
                None if node else f"https://www.example.org/?p={number}&x=1",
                rng.random() < 0.3,
                int(900 * rng.random() ** 5),
            )
            for number in range(1, 241)
        ],
    )
    yield (
        "cms.changelog",
        ("log_id", "node_id", "what"),
        [(number, rng.randrange(1, 700), rng.choice(("added", "shown", "hidden"))) for number in range(1, 301)],
    )
    yield (
        "public.hit",
        ("seen", "url", "referrer", "agent"),
        [
            (
                local(rng, 0.2),
                skewed(rng, nodes)[6],
                maybe(rng, 0.4, f"https://search.example/?q={rng.choice(NOUNS)}"),
                maybe(rng, 0.95, skewed(rng, AGENTS)),
            )
            for _ in range(1300)
        ],
    )


def editor(rng: random.Random, number: int) -> tuple[object, ...]:
    name = person(rng)
    roles = [role for role in ("author", "moderator", "admin", "translator") if rng.random() < 0.35]
    return (
        number,
        f"{ascii_word(name)[:9].strip('-')}{number}",
        name,
        rng.random() < 0.75,
        maybe(rng, 0.8, local(rng, 0.3)),
        roles,
    )


def tree(rng: random.Random, size: int) -> list[tuple[object, ...]]:
    """Nodes under one root; parents come before their children."""
    paths, urls, slugs, languages = ["0001"], ["/"], ["home"], ["en"]
    children: Counter[int] = Counter()
    while len(paths) < size:
        parent = int(len(paths) * rng.random() ** 2.4)
        if len(paths[parent]) >= 24:
            continue
        children[parent] += 1
        paths.append(f"{paths[parent]}{children[parent]:04d}")
        slugs.append(f"{rng.choice(ADJECTIVES)}-{rng.choice(NOUNS)}-{len(paths)}")
        urls.append(f"{urls[parent]}{slugs[-1]}/")
        languages.append(languages[parent] if parent else skewed(rng, LANGUAGES)[0])
    return [
        node(rng, place, paths[place], children[place], slugs[place], urls[place], languages[place])
        for place in range(size)
    ]


def node(
    rng: random.Random, place: int, path: str, children: int, slug: str, url: str, language: str
) -> tuple[object, ...]:
    live = place == 0 or rng.random() < 0.8
    settings: dict[str, object] = {
        "menu": rng.random() < 0.6,
        "template": skewed(rng, ("plain", "wide", "hero")),
    }
    if rng.random() < 0.25:
        settings["seo"] = {"title": title(rng), "index": rng.random() < 0.8}
    return (
        place + 1,
        path,
        len(path) // 4,
        children,
        "folder" if children > 4 else skewed(rng, KINDS),
        slug,
        url,
        title(rng) + rng.choice(("", "", " — part 2", " (archived)", ": it's on")),
        maybe(rng, 0.6, sentence(rng)),
        live,
        language,
        maybe(rng, 0.9, 1 + int(40 * rng.random() ** 1.5)),
        local(rng) if live else None,
        maybe(rng, 0.15, day(rng, date(2024, 10, 2), date(2026, 12, 31))),
        settings,
    )


def draft(rng: random.Random, number: int, nodes: int) -> tuple[object, ...]:
    body: dict[str, object] = {
        "v": rng.choice((1, 2, 2)),
        "words": int(2000 * rng.random() ** 2),
        "text": sentence(rng),
    }
    if rng.random() < 0.3:
        body["flags"] = rng.sample(["legal", "image", "tone", "typo"], rng.randrange(1, 3))
    return (
        number,
        1 + int(nodes * rng.random()),
        maybe(rng, 0.9, rng.randrange(1, 41)),
        local(rng),
        body,
        maybe(rng, 0.6, rng.random() < 0.7),
    )


def picture(rng: random.Random, number: int) -> tuple[object, ...]:
    noun = rng.choice(NOUNS)
    return (
        number,
        f"media/{rng.randrange(2019, 2025)}/{noun}_{number}.{skewed(rng, ('jpg', 'png', 'JPEG', 'webp'))}",
        rng.choice(("", f"A {rng.choice(ADJECTIVES)} {noun}", f"{noun} (detail)")),
        40 * rng.randrange(8, 101),
        40 * rng.randrange(8, 81),
        maybe(rng, 0.9, rng.randrange(20_000, 4_000_000)),
        day(rng, OPENED, TODAY),
        maybe(rng, 0.3, f"({rng.randrange(100)},{rng.randrange(100)})"),
    )
