"""tersql: the shortest SQL script that replays a PostgreSQL change stream exactly.

>>> from tersql import Options, optimize, verify
>>> result = optimize("stream.jsonl.gz", dump="before.sql.gz", options=Options(timezone="UTC"))  # doctest: +SKIP
>>> verify(result.script, "stream.jsonl.gz", dump="before.sql.gz", timezone="UTC").exact  # doctest: +SKIP
True
"""

import os

# Small matrices all over: threads of a BLAS only get into the way of the workers.  Before numpy comes in.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from encoder.transaction import Strategy
from tersql.check import CheckReport, check
from tersql.compare import Comparison, compare
from tersql.errors import InputError, InternalError, NotReplayable
from tersql.explain import Explanation, explain
from tersql.optimize import Options, Result, TransactionReport, optimize
from tersql.verify import verify

__all__ = [
    "CheckReport",
    "Comparison",
    "Explanation",
    "InputError",
    "InternalError",
    "NotReplayable",
    "Options",
    "Result",
    "Strategy",
    "TransactionReport",
    "check",
    "compare",
    "explain",
    "optimize",
    "verify",
]
