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
from tersql.errors import InternalError, NotReplayable
from tersql.optimize import Options, Result, TransactionReport, optimize
from tersql.verify import verify

__all__ = ["InternalError", "NotReplayable", "Options", "Result", "Strategy", "TransactionReport", "optimize", "verify"]
