"""Whatever an environment holds, a run ends in exactly its plan or refuses and changes nothing; canaries never change.

`TEST_SEED=17` replays one environment alone, `TEST_SEED=3000-3299` that many.
Everything runs in a sandbox that can write nothing but its own folder.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import stat
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from imprint.errors import ImprintError
from imprint.probing.host import ChildResult
from imprint.probing.this_machine import RealHost
from imprint.results import Result
from imprint.runtime import checkpoint
from imprint.runtime.foreign import inplace
from support.foreign import Wheels
from support.handmade import Handmade, small_wheels
from support.hostile import Mess, compose, own_more
from support.judge import judge, run
from support.sandbox import run_in
from support.seeds import seeds

pytestmark = pytest.mark.faults

COUNT = {"fast": 40, "tenth": 300, "full": 3000}[os.environ.get("TEST_COUNTS", "fast")]
BATCH = 100
MEMORY = 6 << 30
OPERATIONS = ("cpu", "cpu", "cuda13", "cuda13", "cuda12", "cpu repair", "cuda13 repair", "prune", "prune")


@dataclass(slots=True)
class Batch:
    """What some environments showed: how runs ended, and each fault with the environment's seed and story."""

    ended: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return small_wheels(tmp_path_factory.mktemp("foreign wheels"))


@pytest.mark.timeout(7200)
def test_a_run_converges_or_refuses_and_harms_nobody(
    tmp_path: Path, wheels: Wheels, record_property: Callable[[str, object], None]
) -> None:
    chosen = seeds(COUNT)
    total = Batch()
    # Every fourth as somebody whom modes stop; the superuser runs tests in containers.
    plain, others = [seed for seed in chosen if seed % 4 == 3], [seed for seed in chosen if seed % 4 != 3]
    batches = [part[start : start + BATCH] for part in (others, plain) for start in range(0, len(part), BATCH)]
    for some in batches:
        scratch = tmp_path / f"from {some[0]}"
        scratch.mkdir()

        def body(some: list[int] = some, scratch: Path = scratch) -> Batch:
            return try_all(some, scratch, wheels)

        batch = run_in(scratch, body, seconds=BATCH * 60, plain=some[0] % 4 == 3)
        total.ended += batch.ended
        total.faults += batch.faults
        empty(scratch)
        # All of them, and at once: pytest cuts a long message short, and a full run takes its time.
        print("", *batch.faults, sep="\n", flush=True)  # noqa: T201 - as above
    record_property("ended", dict(total.ended))
    print(f"\n{len(chosen)} environments: {dict(total.ended.most_common())}")  # noqa: T201 - the figures
    assert not total.faults, f"{len(total.faults)} of {len(chosen)}"


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
        def setup(self, build: str = "cpu", **options: Any) -> Result[Any]:  # noqa: ANN401 - as in Handmade
            result = super().setup(build, **options)
            harm(self)
            return result

    def body() -> list[str]:
        mess = Mess(Harmful(tmp_path, wheels), random.Random(0))  # noqa: S311 - as below
        mess.made.make()
        own_more(mess)
        return judge(mess.made, "cpu", mess.guarded(), mess.made.canaries())[1]

    assert [problem for problem in run_in(tmp_path, body) if expected_words in problem] != []


def test_a_refusal_that_changed_something_is_seen(tmp_path: Path, wheels: Wheels) -> None:
    class Refusing(Handmade):
        def setup(self, build: str = "cpu", **_: Any) -> Result[Any]:  # noqa: ANN401 - as in Handmade
            (self.packages / "own" / "data.txt").unlink(missing_ok=True)
            raise ImprintError(f"{build} is refused", code="not-ours")

    def body() -> list[str]:
        mess = Mess(Refusing(tmp_path, wheels), random.Random(0))  # noqa: S311 - as below
        mess.made.make()
        own_more(mess)
        return judge(mess.made, "cpu", mess.guarded(), mess.made.canaries())[1]

    problems = run_in(tmp_path, body)
    assert any(problem.startswith("there is no hint") for problem in problems)
    assert any(problem.startswith("refused (not-ours: cpu is refused), yet gone") for problem in problems)


def try_all(seeds: list[int], scratch: Path, wheels: Wheels) -> Batch:
    """Try each environment in turn and return what happened."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    remember_interpreters()
    batch = Batch()
    for seed in seeds:
        empty(scratch, keep_cache=True)
        chance = random.Random(f"operation {seed}")  # noqa: S311 - reproducible, not secret
        operation = chance.choice(OPERATIONS)
        mess = compose(Handmade(scratch, wheels), seed, whole=operation == "prune" and chance.random() < 0.8)
        problems: list[str] = []
        try:
            guarded, canaries = mess.guarded(), mess.made.canaries()
            if chance.random() < 0.1:
                interrupt(mess, chance)
            for late in mess.late:
                late()
            ended, problems = judge(mess.made, operation, guarded, canaries)
            batch.ended[f"{operation.partition(' ')[0]} {ended.how}"] += 1
        except Exception:
            # Such as an environment whose interpreter is gone, after what was told already.
            problems.append(traceback.format_exc(limit=-2))
        if problems:
            story = "; ".join(mess.told)
            told = "\n  ".join([f"seed {seed}: {operation}: {story}", *problems])
            batch.faults.append(told.replace(str(scratch), ""))
            empty(scratch)
    return batch


def remember_interpreters() -> None:
    """Let an interpreter that was asked before, and is the same in the same place, not be asked again in this process.

    Half of the time went there. What is remembered is what the very same child answered.
    """
    really, answers = RealHost.run, dict[object, ChildResult]()

    def run_once(self: RealHost, argv: Sequence[str], **how: Any) -> ChildResult:  # noqa: ANN401 - as in Host
        if not argv[-1].endswith("interpreter_child.py"):
            return really(self, argv, **how)
        python = Path(argv[0])
        marker = python.parent.parent / "pyvenv.cfg"
        same = (
            *argv,
            python.readlink() if python.is_symlink() else python.read_bytes(),
            marker.read_bytes() if marker.is_file() else None,
        )
        if same not in answers:
            answers[same] = really(self, argv, **how)
        return answers[same]

    # For good: this process is the sandbox's fork.
    setattr(RealHost, "run", run_once)  # noqa: B010 - to a type checker it is another method


def interrupt(mess: Mess, chance: random.Random) -> None:
    """Let an earlier run be stopped at one of the points of a change."""
    point, build = chance.choice(inplace.POINTS), chance.choice(["cpu", "cuda13", "cuda12"])

    def stop(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    checkpoint.listener, before = stop, checkpoint.listener
    try:
        how = run(mess.made, build).how
    except KeyboardInterrupt:
        how = "stopped"
    finally:
        checkpoint.listener = before
    mess.told.append(f"an earlier {build}, stopped at {point}: {how}")


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
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    path.chmod(stat.S_IRWXU)
    for folder, names, _ in os.walk(path):
        for name in names:
            full = Path(folder, name)
            if not full.is_symlink():
                full.chmod(stat.S_IRWXU)
    shutil.rmtree(path)
