"""Parts that all of some texts have and few others: found from the texts themselves, so that length and number of the
others hardly matter.

Parts grow by a letter a round, as in the Apriori algorithm (Agrawal, Srikant, VLDB 1994): a part can be in all texts
only if the two that it is made of are.  A sample of the others tells which parts are worth a look at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_LONGEST = 12
# Letters of the shortest text that are read, others in the sample, and parts that are counted in all.
_MAX_LETTERS = 600
_SAMPLE = 300
_MAX_COUNTED = 10


def shared_parts(needed: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Parts of every text in `needed`, the shortest first, each in fewer of `others` than those before it.

    >>> list(shared_parts(["xcab", "caby"], ["ca", "b", "bab"]))
    ['c', 'cab']
    """
    # Those that still have the best part so far, as far as they are looked at.
    passing = others[:: max(1, len(others) // _SAMPLE)]
    least, counted = len(others), 0
    for parts in _rounds(needed):
        rarity = sorted((sum(part in text for text in passing), part) for part in parts)
        for _, part in rarity[:2]:
            if not least or counted == _MAX_COUNTED:
                return
            counted += 1
            having = [text for text in others if part in text]
            if len(having) < least:
                yield part
                least, passing = len(having), having[:_SAMPLE]


def _rounds(needed: Sequence[str]) -> Iterator[list[str]]:
    """The parts of one letter, of two, …"""
    shortest = min(needed, key=len)[:_MAX_LETTERS]
    known = {""}
    for size in range(1, _LONGEST + 1):
        made = {shortest[at : at + size] for at in range(len(shortest) - size + 1)}
        known = {
            part for part in made if part[1:] in known and part[:-1] in known and all(part in text for text in needed)
        }
        if not known:
            return
        yield sorted(known)
