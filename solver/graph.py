"""The two graph algorithms that the reductions need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class UnionFind:
    """Disjoint sets over 0..n-1, with path halving; a set is named by its least member."""

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, a: int) -> int:
        while self._parent[a] != a:
            self._parent[a] = self._parent[self._parent[a]]
            a = self._parent[a]
        return a

    def union(self, members: Iterable[int]) -> None:
        roots = sorted({self.find(a) for a in members})
        for root in roots[1:]:
            self._parent[root] = roots[0]

    def sets(self) -> list[list[int]]:
        """All sets, each ascending, ordered by their least members."""
        found: dict[int, list[int]] = {}
        for a in range(len(self._parent)):
            found.setdefault(self.find(a), []).append(a)
        return list(found.values())


def cycles(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each node the number of its strongly connected component (Tarjan 1972, without recursion)."""
    n = len(successors)
    index, low, component = [-1] * n, [0] * n, [-1] * n
    path: list[int] = []
    clock = components = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = clock
        clock += 1
        path.append(root)
        while work:
            node, edges = work[-1]
            for target in edges:
                if index[target] < 0:
                    index[target] = low[target] = clock
                    clock += 1
                    path.append(target)
                    work.append((target, iter(successors[target])))
                    break
                if component[target] < 0:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    while component[node] < 0:
                        component[path.pop()] = components
                    components += 1
    return component
