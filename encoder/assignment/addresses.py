"""Network addresses as Python has them."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TypeAlias

NETWORKS = frozenset({"inet", "cidr"})

Address: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@lru_cache(maxsize=50_000)
def address(text: str) -> Address:
    return ipaddress.ip_interface(text)
