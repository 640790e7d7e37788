"""Builds a tool environment from a hash-locked requirement file; what the launchers run when there is none yet.

Run as `python3 -I cmd/imprint_launch --home HOME --lock LOCK --into ENV -- ARGS` with any Python from 3.11 and the
standard library alone. ARGS are the words the launcher was called with: `--json` among them asks for the failure as
an envelope. The environment is built beside its place and renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

OLDEST_UV = (0, 8, 0)
"""The oldest uv that builds this environment as meant (`--no-config`, `--require-hashes`, `pip install --no-deps`)."""

PASSED = re.compile(
    r"(?i)^(https?_proxy|no_proxy|all_proxy|ssl_cert_(file|dir)|uv_default_index|uv_system_certs|uv_native_tls|uv_http_timeout)$"
)
"""Settings of the user's network that uv still gets; everything else that begins with UV_ is dropped."""

PIP_DROPPED = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_CONSTRAINT",
    "PIP_PYTHON",
)
"""Settings that would send pip's files elsewhere or contradict the lock."""


class Failure(Exception):  # noqa: N818 - it is the answer, not only an error
    """Why no environment was built: the code and exit code of docs/exit-codes.md, a sentence, a hint."""

    def __init__(self, code: str, exit_code: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code
        self.message = message
        self.hint = hint


def parse_arguments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split the launcher's own options (before `--`) from the words of the command."""
    cut = list(words).index("--") if "--" in words else len(words)
    own, rest = list(words[:cut]), list(words[cut + 1 :])
    return dict(zip((name.lstrip("-") for name in own[::2]), own[1::2], strict=True)), rest


def value_of(option: str, words: Sequence[str]) -> str | None:
    """Return the value that `words` give an option, as `--option VALUE` or `--option=VALUE`."""
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def parse_uv_version(text: str) -> tuple[int, ...] | None:
    """Return the version in the line `uv --version` prints, or None."""
    match = re.match(r"uv (\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else None


def classify(output: str, free_bytes: int, where: Path) -> Failure:
    """Turn the last words of pip or uv into a failure with code and hint."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = next(
        (line for line in lines if re.match(r"(?i)(error|\u00d7|caused by)", line)),
        lines[-1] if lines else "no output",
    )
    lower = output.lower()
    if "no space left" in lower or "os error 28" in lower:
        return no_space(free_bytes, where)
    if "do not match the hashes" in lower or "hash mismatch" in lower:
        return Failure(
            "integrity",
            6,
            f"a download does not have the locked hash: {last}",
            "a mirror or proxy changed the file; try another network",
        )
    if "permission denied" in lower or "read-only file system" in lower:
        return Failure(
            "home-not-writable",
            1,
            f"cannot write in {where}: {last}",
            "set IMPRINT_HOME to a folder you may write to",
        )
    network = (
        "connect",
        "resolve",
        "timed out",
        "network",
        "retries",
        "no matching distribution",
        "dns",
        "fetch",
        "unreachable",
        "tls",
        "certificate",
    )
    if any(word in lower for word in network):
        return Failure(
            "network",
            5,
            f"the tool environment could not be downloaded: {last}",
            "check the network (HTTPS_PROXY, certificates) and run this again",
        )
    return Failure("failed", 1, f"the tool environment could not be built: {last}")


def no_space(free_bytes: int, where: Path) -> Failure:
    """Return the failure of a disk that is too full."""
    return Failure(
        "no-space",
        7,
        f"the tool environment needs about 120 MiB, {free_bytes // 2**20} MiB are free in {where}",
    )


def clean_environment(cache: Path) -> dict[str, str]:
    """Return this process's environment without what would change where uv and pip put things."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if (not name.upper().startswith("UV_") or PASSED.match(name))
        and name.upper() not in PIP_DROPPED
        and name not in {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"}
    }
    return kept | {
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
        "PIP_CONSTRAINT": os.devnull,
    }


def suitable_uv(environ: dict[str, str]) -> str | None:
    """Return the uv on PATH when it answers and is new enough."""
    found = shutil.which("uv", path=environ.get("PATH"))
    if found is None:
        return None
    try:
        answer = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=10, env=environ, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_uv_version(answer.stdout)
    return found if version is not None and version >= OLDEST_UV else None


class Builder:
    """Runs the steps in one staging folder; every child is its own process group, so that it can be ended whole."""

    def __init__(self, stage: Path, cache: Path, words: Sequence[str] = ()) -> None:
        self.stage = stage
        self.environ = clean_environment(cache)
        self.offline = "--offline" in words
        if index := value_of("--index-url", words):
            # Not an argument: it may carry a password, and arguments are for everyone to see.
            self.environ |= {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index}
        folder = value_of("--find-links", words)
        self.links = ("--find-links", str(Path(folder).absolute())) if folder else ()
        self.child: subprocess.Popen[str] | None = None

    def run(self, *command: str | Path) -> None:
        """Run one command to its end, quietly; raise Failure with its last words when it fails."""
        self.child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self.environ,
            cwd=self.stage.parent,
            start_new_session=True,
        )
        output, _ = self.child.communicate()
        if self.child.returncode != 0:
            raise classify(output, shutil.disk_usage(self.stage.parent).free, self.stage.parent)

    def stop(self) -> None:
        """End the running child and all it started."""
        if self.child is not None and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()

    def build(self, lock: Path) -> None:
        """Make the environment in the staging folder."""
        python = interpreter_of(self.stage)
        uv = suitable_uv(self.environ)
        if uv is None:
            self._make_with_venv(python, lock.with_name("uv.txt"))
            uv = str(python.with_name("uv.exe" if os.name == "nt" else "uv"))
        else:
            self.run(uv, "venv", "--no-config", "--quiet", "--python", sys.executable, self.stage)
        self.run(
            uv, "pip", "install", "--no-config", "--quiet", "--python", python,
            "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", lock,
            *self.links, *(("--offline",) if self.offline else ()),
        )  # fmt: skip

    def _make_with_venv(self, python: Path, uv_lock: Path) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if any(_is_missing(name) for name in ("venv", "ensurepip")):
            raise Failure(
                "failed", 1, f"Python {version} at {sys.executable} has no venv module",
                f"install it (Debian and Ubuntu: `apt install python{version}-venv`) or put uv on PATH",
            )  # fmt: skip
        self.run(sys.executable, "-I", "-m", "venv", self.stage)
        self.run(
            python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
            "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", uv_lock,
            *self.links, *(("--no-index",) if self.offline else ()),
        )  # fmt: skip


def _is_missing(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is None


def interpreter_of(environment: Path) -> Path:
    """Return where an environment's interpreter lies."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def sweep(folder: Path) -> None:
    """Remove staging folders whose process is gone: what a killed first start left behind."""
    for stage in folder.glob(".building-*"):
        try:
            os.kill(int(stage.name.rpartition("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(stage, ignore_errors=True)
        except (ValueError, OSError):
            continue


def install(home: Path, lock: Path, into: Path, words: Sequence[str] = ()) -> None:
    """Build the environment that belongs at `into`. Raises Failure, with nothing half made left behind.

    `words` are those of the command; its `--index-url`, `--find-links` and `--offline` count here too.
    """
    if not home.is_absolute():
        raise Failure("usage", 2, f"IMPRINT_HOME is a relative path: {home}", "set IMPRINT_HOME to an absolute path")
    stage = into.with_name(f".building-{os.getpid()}")
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except OSError as error:
        if error.errno == 28:
            raise no_space(0, home) from error
        raise Failure(
            "home-not-writable", 1, f"cannot write in {home}: {error.strerror}",
            "set IMPRINT_HOME to a folder you may write to",
        ) from error  # fmt: skip
    sweep(into.parent)
    builder = Builder(stage, home / ".uv-cache", words)
    try:
        try:
            builder.build(lock)
        except Failure as failure:
            if failure.code != "no-space":
                raise
            shutil.rmtree(stage, ignore_errors=True)  # first, so that what it took counts as free again
            raise no_space(shutil.disk_usage(into.parent).free, into.parent) from failure
        if os.access(interpreter_of(into), os.X_OK):
            return  # another launcher was faster, and its environment may be in use already
        if into.exists():  # its interpreter is gone
            into.rename(stage.with_name(stage.name + "-old"))
        stage.rename(into)
        shutil.rmtree(stage.with_name(stage.name + "-old"), ignore_errors=True)
    finally:
        builder.stop()
        shutil.rmtree(stage, ignore_errors=True)


def tell_damage(error: Exception) -> int:
    """Say that the environment this runs in has lost packages, and return the exit code."""
    message = f"the tool environment {sys.prefix} is damaged: {error}"
    report(Failure("tool-damaged", 1, message, "delete that folder; the next start builds it anew"), sys.argv[1:])
    return 1


def report(failure: Failure, words: Sequence[str]) -> None:
    """Say why: an envelope on stdout when the command asked for JSON, else two lines on stderr."""
    if "--json" in words:
        command = next((word for word in words if not word.startswith("-")), "imprint")
        error = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        envelope = {
            "schema": 1,
            "command": command,
            "ok": False,
            "data": {},
            "warnings": [],
            "errors": [error],
        }
        event = {"event": "result"} if command in {"setup", "bootstrap"} else {}
        print(json.dumps(event | envelope))
        return
    print(f"error: {failure.message}", file=sys.stderr)
    if failure.hint:
        print(f"hint: {failure.hint}", file=sys.stderr)


def main() -> int:
    """Build, or say why not; returns the exit code."""
    options, words = parse_arguments(sys.argv[1:])

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if "--json" not in words:
        print("imprint: preparing the tool environment (once, about 40 MB) …", file=sys.stderr)
    try:
        install(Path(options["home"]), Path(options["lock"]), Path(options["into"]), words)
    except Failure as failure:
        report(failure, words)
        return failure.exit_code
    except KeyboardInterrupt:
        report(Failure("interrupted", 130, "interrupted; nothing was changed"), words)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
