"""Network addresses: moved by a number, other masks, networks and hosts; numbers that addresses give."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from emit.term import Prec, Term, call, cast, op, raw
from encoder.assignment import numeric
from encoder.assignment.addresses import NETWORKS, Address, address
from encoder.assignment.problem import INTEGERS, Input, Problem
from scratch.catalog import Column

_OFFSET = Column("", "bigint", "bigint", "N", False, None, False, "", None)
_PER_INPUT = 4

Line: TypeAlias = tuple[Address | None, ...]


def addresses(texts: Sequence[str | None]) -> Line:
    return tuple(None if text is None else address(text) for text in texts)


def _broadcast(value: Address) -> Address:
    return ipaddress.ip_interface(f"{value.network.broadcast_address}/{value.network.prefixlen}")


_FUNCTIONS: tuple[tuple[Callable[[Term], Term], Callable[[Address], Address]], ...] = (
    (lambda term: call("network", term), lambda value: ipaddress.ip_interface(str(value.network))),
    (lambda term: call("broadcast", term), _broadcast),
    (lambda term: cast(call("host", term), "inet"), lambda value: ipaddress.ip_interface(str(value.ip))),
)


def networks(problem: Problem) -> Iterator[Term]:
    """A new address from an old one; a number from two addresses."""
    if problem.base in NETWORKS:
        wanted = addresses(problem.new)
        for item in problem.inputs:
            if item.base in NETWORKS:
                old = addresses(item.texts)
                if [a is None for a in old] == [b is None for b in wanted]:
                    yield from _reshaped(item, old, wanted)
                    yield from islice(_moved(problem, item, old, wanted), _PER_INPUT)
    elif problem.base in INTEGERS | {"numeric"}:
        yield from _distances(problem)


def _reshaped(item: Input, old: Line, wanted: Line) -> Iterator[Term]:
    for build, function in _FUNCTIONS:
        if tuple(a and function(a) for a in old) == wanted:
            yield build(item.term)
    lengths = {b.network.prefixlen for b in wanted if b is not None}
    same = all(a is None or b is None or _same_bits(item.base, a, b) for a, b in zip(old, wanted, strict=True))
    if len(lengths) == 1 and same:
        yield call("set_masklen", item.term, raw(str(*lengths)))


def _same_bits(base: str, a: Address, b: Address) -> bool:
    """Whether `b` is `a` under another mask; a cidr keeps no bits to the right of it."""
    return a.version == b.version and (b.ip in (a.ip, b.network.network_address) if base == "cidr" else a.ip == b.ip)


def _moved(problem: Problem, item: Input, old: Line, wanted: Line) -> Iterator[Term]:
    """x+k and x-k, where k may be an expression."""
    steps: list[str | None] = []
    for a, b in zip(old, wanted, strict=True):
        if a is None or b is None:
            steps.append(None)
        elif a.version != b.version or a.network.prefixlen != b.network.prefixlen:
            return
        else:
            steps.append(str(int(b.ip) - int(a.ip)))
    known = {step for step in steps if step is not None}
    if len(known) == 1:
        (step,) = known
        if step != "0":
            yield op(item.term, "-" if step.startswith("-") else "+", raw(step.lstrip("-")))
        return
    if all(abs(int(step)) < 1 << 62 for step in known):
        inner = problem.aiming(_OFFSET, tuple(steps))
        yield from (_added(item.term, term) for term in numeric.single(inner))


def _added(left: Term, right: Term) -> Term:
    """x+a-b rather than x+(a-b): an address moved twice is an address too."""
    return Term((*left.parts, "+", *right.parts), Prec.ADD) if right.prec == Prec.ADD else op(left, "+", right)


def _distances(problem: Problem) -> Iterator[Term]:
    own = [item for item in problem.own if item.base in NETWORKS]
    for a in own:
        for b in own:
            if a is b:
                continue
            steps = tuple(
                str(int(x.ip) - int(y.ip)) if x is not None and y is not None and x.version == y.version else None
                for x, y in zip(addresses(a.texts), addresses(b.texts), strict=True)
            )
            term = op(a.term, "-", b.term)
            yield from islice(numeric.of_input(problem, Input(term, "bigint", "N", steps, problem.cost(term))), 2)
