"""Whatever an environment holds, a run ends in exactly its plan or refuses and changes nothing; canaries never change.

`TEST_SEED=17` replays one environment alone. Everything runs in a sandbox that can write nothing but its own folder.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import stat
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from imprint.errors import ImprintError
from imprint.operations.result import Result
from imprint.runtime import checkpoint, inplace
from support.foreign import Wheels, make_wheels
from support.handmade import Handmade, expected
from support.hostile import Mess, compose, own_more
from support.sandbox import Entry, differences, run_in
from support.twins import lock

pytestmark = pytest.mark.faults

COUNT = {"fast": 40, "tenth": 300, "full": 3000}[os.environ.get("TEST_COUNTS", "fast")]
BATCH = 100
SECONDS = 30
"""No run takes that long unless it hangs."""
MEMORY = 6 << 30
OPERATIONS = ("cpu", "cpu", "cuda13", "cuda13", "cuda12", "cpu repair", "cuda13 repair", "prune", "prune")
OURS = ("onnxruntime", "nvidia", "numpy", "packaging", "flatbuffers", "protobuf", "tokenizers", "link", "loop", "~")


class HangError(BaseException):
    """A run did not end; not an Exception, so that nothing takes it for one of its own."""


@dataclass(slots=True)
class Batch:
    """What some environments showed: how runs ended, and each fault with the environment's seed and story."""

    ended: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    made = make_wheels(tmp_path_factory.mktemp("foreign wheels"))
    made.add("tokenizers", "0.23.3", {"tokenizers/__init__.py": ""}, ["numpy"])
    lock(made.lock("base"), {"tokenizers==0.23.3": made.made["tokenizers==0.23.3"]})
    return made


@pytest.mark.timeout(7200)
def test_a_run_converges_or_refuses_and_harms_nobody(
    tmp_path: Path, wheels: Wheels, record_property: Callable[[str, object], None]
) -> None:
    seeds = [int(os.environ["TEST_SEED"])] if "TEST_SEED" in os.environ else list(range(COUNT))
    total = Batch()
    for start in range(0, len(seeds), BATCH):
        some = seeds[start : start + BATCH]
        scratch = tmp_path / f"from {some[0]}"
        scratch.mkdir()

        def body(some: list[int] = some, scratch: Path = scratch) -> Batch:
            return try_all(some, scratch, wheels)

        batch = run_in(scratch, body, seconds=BATCH * SECONDS)
        total.ended += batch.ended
        total.faults += batch.faults
        empty(scratch)
    record_property("ended", dict(total.ended))
    print(f"\n{len(seeds)} environments: {dict(total.ended.most_common())}")  # noqa: T201 - the figures
    print("\n".join(total.faults))  # noqa: T201 - all of them, not what pytest leaves of a long message
    assert not total.faults, f"{len(total.faults)} of {len(seeds)}"


HARM: dict[str, tuple[Callable[[Handmade], object], str]] = {
    "a canary is removed": (lambda made: (made.scratch / "x" / "y" / "file.txt").unlink(), "canary gone: x/y/file.txt"),
    "an empty folder is removed": (lambda made: (made.scratch / "above" / "empty").rmdir(), "canary gone: above/empty"),
    "a canary gets a second name": (
        lambda made: os.link(made.scratch / "file.txt", made.scratch / "tmp" / "name"),
        "canary changed: file.txt",
    ),
    "a package of the owner's changes": (
        lambda made: (made.packages / "own" / "data.txt").write_text("other"),
        "the owner's changed: ",
    ),
    "a file that nothing records goes": (
        lambda made: (made.packages / "own" / "unrecorded" / "notes.txt").unlink(),
        "the owner's gone: ",
    ),
    "something new comes beside": (lambda made: (made.prefix / "bin" / "new").touch(), "not ours"),
    "the build is not the planned one": (
        lambda made: (made.packages / "onnxruntime" / "capi" / "library.so").write_text("another library\n"),
        "it loads onnxruntime 1.31.1 another",
    ),
    "files are shared with somebody": (
        lambda made: os.link(made.packages / "onnxruntime" / "part1.py", made.scratch / "tmp" / "part"),
        "shares its content",
    ),
    "it is a bug": (lambda made: made.events[99], "exit 70: IndexError"),
}


@pytest.mark.parametrize("what", sorted(HARM))
def test_the_judge_sees_each_kind_of_harm(tmp_path: Path, wheels: Wheels, what: str) -> None:
    """Control: the same judge over a run that did what it must not."""
    harm, expected_words = HARM[what]

    class Harmful(Handmade):
        def setup(self, build: str = "cpu", **options: Any) -> Result:  # noqa: ANN401 - as in Handmade
            result = super().setup(build, **options)
            harm(self)
            return result

    def body() -> list[str]:
        mess = Mess(Harmful(tmp_path, wheels), random.Random(0))  # noqa: S311 - as below
        mess.made.make()
        own_more(mess)
        return list(judge(mess, "cpu", random.Random(1), Counter()))  # noqa: S311 - as below

    assert [problem for problem in run_in(tmp_path, body) if expected_words in problem] != []


def test_a_refusal_that_changed_something_is_seen(tmp_path: Path, wheels: Wheels) -> None:
    class Refusing(Handmade):
        def setup(self, build: str = "cpu", **_: Any) -> Result:  # noqa: ANN401 - as in Handmade
            (self.packages / "own" / "data.txt").unlink(missing_ok=True)
            raise ImprintError(f"{build} is refused", code="not-ours")

    def body() -> list[str]:
        mess = Mess(Refusing(tmp_path, wheels), random.Random(0))  # noqa: S311 - as below
        mess.made.make()
        own_more(mess)
        return list(judge(mess, "cpu", random.Random(1), Counter()))  # noqa: S311 - as below

    problems = run_in(tmp_path, body)
    assert any(problem.startswith("no hint") for problem in problems)
    assert any(problem.startswith("refused (not-ours), yet gone") for problem in problems)


def try_all(seeds: list[int], scratch: Path, wheels: Wheels) -> Batch:
    """Try each environment in turn and return what happened."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    batch = Batch()
    for seed in seeds:
        empty(scratch, keep_cache=True)
        mess = compose(Handmade(scratch, wheels), seed)
        chance = random.Random(f"operation {seed}")  # noqa: S311 - reproducible, not secret
        operation = chance.choice(OPERATIONS)
        problems: list[str] = []
        try:
            problems.extend(judge(mess, operation, chance, batch.ended))
        except Exception:
            # Such as an environment whose interpreter is gone, after what was told already.
            problems.append(traceback.format_exc(limit=-2))
        if problems:
            story = "; ".join(mess.told)
            batch.faults.append("\n  ".join([f"seed {seed}: {operation}: {story}", *problems]))
            empty(scratch)
    return batch


def judge(mess: Mess, operation: str, chance: random.Random, ended: Counter[str]) -> Iterator[str]:
    """Run one operation twice and yield what is wrong with how it ended."""
    made = mess.made
    guarded = mess.guarded()
    canaries = made.canaries()
    if chance.random() < 0.1:
        interrupt(mess, chance)
    for late in mess.late:
        late()
    before = made.environment()
    loaded_before = made.loads() if operation == "prune" else ""
    how, problem = run(made, operation)
    ended[f"{operation.partition(' ')[0]} {how}"] += 1
    if problem is not None:
        yield problem
    after = made.environment()
    yield from few(f"canary {line}" for line in differences(canaries, made.canaries()))
    if how != "done":
        yield from few(f"refused ({how}), yet {line}" for line in differences(before, after))
        again, problem = run(made, operation) if how != "hang" else (how, None)
        if again != how:
            yield f"refused ({how}) and then {again} {problem or ''}"
        return
    kept = {path: after[path] for path in guarded if path in after}
    yield from few(f"the owner's {line}" for line in differences(guarded, kept))
    yield from few(f"{line}, not ours" for line in differences(before, after) if not may_change(made, line))
    yield from few(f"{path} shares its content: {entry}" for path, entry in linked(before, after))
    loads = made.loads()
    if loads != (expected(operation.split(maxsplit=1)[0]) if operation != "prune" else loaded_before):
        yield f"it loads {loads}"
    again, problem = run(made, operation.split(maxsplit=1)[0])
    if again != "done":
        yield f"done, and then {again} {problem or ''}"
    yield from few(f"the second run changed {line}" for line in differences(after, made.environment()))


def run(made: Handmade, operation: str) -> tuple[str, str | None]:
    """Run an operation; return `done`, the code of a refusal, `bug` or `hang`, and what is wrong with that."""
    build, _, repair = operation.partition(" ")
    made.events.clear()
    try:
        with deadline():
            result: Result = made.prune() if build == "prune" else made.setup(build, repair=bool(repair))
    except ImprintError as error:
        problem = None if error.hint and error.message else f"no hint: {error.message}"
        return error.specific_code, problem
    except HangError:
        return "hang", f"it did not end within {SECONDS} s"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/imprint/" in frame.filename][-1:]
        told = " in ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in (where, *ours))
        return "bug", f"exit 70: {type(error).__name__}: {str(error)[:200]} ({told})"
    if not result.ok:
        return result.errors[0].code, None
    return "done", None


def interrupt(mess: Mess, chance: random.Random) -> None:
    """Let an earlier run be stopped at one of the points of a change."""
    point, build = chance.choice(inplace.POINTS), chance.choice(["cpu", "cuda13", "cuda12"])

    def stop(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    checkpoint.listener, before = stop, checkpoint.listener
    try:
        how, _ = run(mess.made, build)
    except KeyboardInterrupt:
        how = "stopped"
    finally:
        checkpoint.listener = before
    mess.told.append(f"an earlier {build}, stopped at {point}: {how}")


def few(problems: Iterable[str], count: int = 3) -> list[str]:
    """Return the first of many problems of one kind."""
    found = list(problems)
    return found[:count] + ([f"… and {len(found) - count} more such"] if len(found) > count else [])


def may_change(made: Handmade, line: str) -> bool:
    """Whether a line of `differences` is about something that a run may change: builds and what belongs to them."""
    inside = made.packages.relative_to(made.prefix).as_posix() + "/"
    path = line.split(": ")[1]
    if not path.startswith(inside):
        return False
    top = path.removeprefix(inside).partition("/")[0]
    return top.lower().startswith(OURS) or top.lower().endswith((".dist-info", ".dist-info.bak"))


def linked(before: dict[str, Entry], after: dict[str, Entry]) -> list[tuple[str, Entry]]:
    """Return the files that have more names than before: somebody else's content would change with them."""
    old = {path: entry.names for path, entry in before.items()}
    return [(path, entry) for path, entry in after.items() if entry.kind == "-" and entry.names > old.get(path, 1)]


def empty(scratch: Path, *, keep_cache: bool = False) -> None:
    """Remove everything but, when told, what the installer has unpacked already."""
    for path in scratch.iterdir():
        if keep_cache and path.name == "home":
            for part in path.iterdir():
                if part.name != ".uv-cache":
                    remove(part)
        else:
            remove(path)


def remove(path: Path) -> None:
    """Remove a folder whatever modes it holds."""
    if path.is_dir() and not path.is_symlink():
        if os.geteuid():
            for folder, names, _ in os.walk(path):
                for name in names:
                    full = Path(folder, name)
                    if not full.is_symlink():
                        full.chmod(stat.S_IRWXU)
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def deadline() -> Iterator[None]:
    """Raise HangError in the body after `SECONDS`."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
