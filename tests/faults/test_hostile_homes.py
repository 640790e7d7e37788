"""Whatever a home of Imprint's holds, nothing outside of it changes, and runs end in their plan or say why not.

`TEST_SEED=17` replays one home alone, `TEST_SEED=3000-3299` that many.
Everything runs in a sandbox that can write nothing but its own folder.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.prune import prune
from imprint.operations.rollback import rollback
from imprint.operations.status import status
from imprint.results import Result
from imprint.runtime.target import current_target
from support.handmade import plant
from support.hostile_homes import Disorder, disturb
from support.judge import HangError, deadline, few
from support.place import Place
from support.sandbox import Entry, differences, run_in, snapshot
from support.seeds import seeds
from support.twins import Twins, loaded, make_twins, twin_check

pytestmark = pytest.mark.faults

COUNT = {"fast": 20, "tenth": 100, "full": 1000}[os.environ.get("TEST_COUNTS", "fast")]
BATCH = 100
OPERATIONS = ("setup cpu", "setup gpu", "repair cpu", "repair gpu", "rollback", "prune", "prune", "status")
EXPECTED = {"cpu": "onnxruntime 1.31.1 onnxruntime", "gpu": "onnxruntime-gpu 1.31.1 onnxruntime-gpu"}


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"))


@pytest.mark.timeout(7200)
def test_a_run_over_a_damaged_home_harms_nobody(
    tmp_path: Path, twins: Twins, record_property: Callable[[str, object], None]
) -> None:
    chosen = seeds(COUNT)
    ended: Counter[str] = Counter()
    faults: list[str] = []
    for start in range(0, len(chosen), BATCH):
        some = chosen[start : start + BATCH]
        scratch = tmp_path / f"from {some[0]}"
        scratch.mkdir()

        def body(some: list[int] = some, scratch: Path = scratch) -> tuple[Counter[str], list[str]]:
            return try_all(some, scratch, twins)

        more, found = run_in(scratch, body, seconds=BATCH * 60)
        ended += more
        faults += found
        shutil.rmtree(scratch)
    record_property("ended", dict(ended))
    print(f"\n{len(chosen)} homes: {dict(ended.most_common())}")  # noqa: T201 - the figures
    print("\n".join(faults))  # noqa: T201 - all of them, not what pytest leaves of a long message
    assert not faults, f"{len(faults)} of {len(chosen)}"


def test_harm_beside_a_home_is_seen(tmp_path: Path, twins: Twins) -> None:
    """Control: a run that removes a canary, and one that removes the owner's folder in the home."""

    def body() -> list[str]:
        place = Place(tmp_path / "home", twins)
        place.setup("cpu")
        plant(tmp_path)
        notes = place.home.root / "notes"
        notes.mkdir()

        class Harmful(Place):
            def setup(self, device: str = "cpu", **options: object) -> Result[Any]:
                shutil.rmtree(tmp_path / "x" / "y")
                notes.rmdir()
                return super().setup(device, **options)

        disorder = Disorder(tmp_path, place.home, random.Random(0), foreign={"notes"})  # noqa: S311 - as below
        return judge(Harmful(place.home.root, twins), "setup cpu", disorder, Counter())

    problems = run_in(tmp_path, body)
    assert any(problem.startswith("canary gone: x/y") for problem in problems)
    assert any(problem.startswith("the owner's gone: notes") for problem in problems)


def try_all(seeds: list[int], scratch: Path, twins: Twins) -> tuple[Counter[str], list[str]]:
    """Try each home in turn; return how runs ended, and each fault with the home's seed and story."""
    ended: Counter[str] = Counter()
    faults: list[str] = []
    template = scratch / "template"
    place = Place(scratch / "work" / "home", twins)
    for device in ("cpu", "gpu"):
        place.setup(device)
    place.home.root.rename(template)
    for seed in seeds:
        shutil.rmtree(scratch / "work")
        (scratch / "work").mkdir()
        plant(scratch / "work")
        # Its own hard links stay links between its copies.
        subprocess.run(["cp", "-a", template, place.home.root], check=True)
        chance = random.Random(f"home {seed}")  # noqa: S311 - reproducible, not secret
        disorder = Disorder(scratch / "work", place.home, chance)
        operation = chance.choice(OPERATIONS)
        try:
            disturb(disorder)
            problems = judge(place, operation, disorder, ended)
        except Exception:
            problems = [traceback.format_exc(limit=-3)]
        if problems:
            told = "\n  ".join([f"home {seed}: {operation}: {'; '.join(disorder.told)}", *problems])
            faults.append(told.replace(str(scratch / "work"), ""))
    return ended, faults


def judge(place: Place, operation: str, disorder: Disorder, ended: Counter[str]) -> list[str]:
    """Run an operation and then a plain setup; return what is wrong with how they ended."""
    canaries = outside(disorder.scratch)
    owned = guarded(place, disorder.foreign)
    works = what_runs(place)
    how, problems = run(place, operation)
    ended[f"{operation} {how}"] += 1
    problems += few(f"canary {line}" for line in harm(canaries, disorder))
    problems += few(f"the owner's {line}" for line in differences(owned, guarded(place, disorder.foreign)))
    now = what_runs(place)
    if how != "done" and works in EXPECTED.values() and now != works:
        problems.append(f"{how}: what worked ({works}) is now {now}")
    what, _, device = operation.partition(" ")
    if how == "done" and what in {"setup", "repair"} and now != EXPECTED[device]:
        problems.append(f"it loads {now}")
    if how in {"bug", "hang"}:
        return problems
    again, more = run(place, f"setup {device or 'cpu'}")
    problems += [f"then: {problem}" for problem in more]
    if again == "done" and (now := what_runs(place)) != EXPECTED[device or "cpu"]:
        problems.append(f"a plain setup afterwards loads {now}")
    if what in {"setup", "repair"} and how == "done" and again != "done":
        problems.append(f"done, and then {again}")
    problems += few(f"canary, after a plain setup, {line}" for line in harm(canaries, disorder))
    return problems


def run(place: Place, operation: str) -> tuple[str, list[str]]:
    """Run an operation; return `done`, the code of a refusal, `bug` or `hang`, and what is wrong with that."""
    what, _, device = operation.partition(" ")
    context = Context(place.home, place.context.environ, {"model.device": "cpu"})
    try:
        with deadline():
            if what in {"setup", "repair"}:
                result = place.setup(device, repair=what == "repair")
            elif what == "rollback":
                result = rollback(context, prove=twin_check, wait_seconds=0)
            else:
                result = prune(context, wait_seconds=0) if what == "prune" else status(context)
    except ImprintError as error:
        told = error.hint is not None or str(place.home.root) in error.message
        return error.specific_code, [] if told else [f"neither a path nor a hint: {error.message}"]
    except HangError:
        return "hang", ["it did not end"]
    except Exception as error:
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/imprint/" in frame.filename][-2:]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(ours))
        return "bug", [f"exit 70: {type(error).__name__}: {str(error)[:200]} ({where})"]
    return ("done", []) if result.ok else (result.errors[0].code, [])


def outside(scratch: Path) -> dict[str, Entry]:
    """Return everything beside the home."""
    return snapshot(scratch, without=lambda path: path == "home")


def harm(canaries: dict[str, Entry], disorder: Disorder) -> list[str]:
    """Return what changed beside the home; not what is new in a folder that the home's own folder leads to."""
    moved = tuple(path for path in disorder.lent if "moved" in path)
    told = []
    for line in differences(canaries, outside(disorder.scratch)):
        kind, path, _ = line.split(": ", 2)
        if not (path.startswith(moved) or (kind == "new" and path.startswith(tuple(disorder.lent)))):
            told.append(line)
    return told


def guarded(place: Place, foreign: set[str]) -> dict[str, Entry]:
    """Return what is the owner's in the home."""
    return {path: entry for path, entry in snapshot(place.home.root).items() if path in foreign}


def what_runs(place: Place) -> str | None:
    """Return what the current generation loads, None where there is none that can be read."""
    try:
        target = current_target(place.home)
    except ImprintError:
        return None
    if target is None:
        return None
    try:
        return loaded(target.python)
    except OSError:
        return None
