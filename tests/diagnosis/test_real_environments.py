"""The reported states with the real wheels: needs the network, and 600 MB of wheels once."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.paths import Home
from imprint.runtime.distributions import inventory
from imprint.runtime.installer.uv import find_uv

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
IN_NAMESPACE = ("unshare", "--mount", "--map-root-user")
LOOK = """
import json, os, sys
from pathlib import Path
from imprint.context import Context
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.paths import Home
context = Context(Home(Path(sys.argv[1])), dict(os.environ), {})
print(json.dumps(diagnose(context, DoctorOptions(venv=Path(sys.argv[2]))).data))
"""


class Real:
    """A folder with a cache that all tests share, and environments made from it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(root / "home")
        keep = ("UV_", "PIP_", "IMPRINT_", "CUDA_", "LD_LIBRARY_PATH")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(keep)}
        self.home.root.mkdir(parents=True)
        self.executable = str(find_uv(self.home, self.environ).executable)

    def argv(self, *arguments: str) -> list[str]:
        """Return uv's command line, as the owner would run it."""
        return [self.executable, "--no-config", "--cache-dir", str(self.root / "cache"), *arguments]

    def uv(self, *arguments: str) -> None:
        """Run uv."""
        subprocess.run(self.argv(*arguments), check=True, env=self.environ, capture_output=True)

    def make(self, name: str, *pins: str) -> Path:
        """Return a new environment with `pins` and what they require."""
        prefix = self.root / name
        self.uv("venv", "--quiet", "--clear", "--python", sys.executable, str(prefix))
        if pins:
            self.install(prefix, *pins)
        return prefix

    def install(self, prefix: Path, *pins: str) -> None:
        """Install into an environment."""
        self.uv("pip", "install", "--quiet", "--python", str(prefix), *pins)

    def look(self, prefix: Path, **environ: str) -> Mapping[str, Any]:
        """Return what doctor says."""
        context = Context(self.home, {**self.environ, **environ})
        return diagnose(context, DoctorOptions(venv=prefix)).data


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Real:
    return Real(tmp_path_factory.mktemp("real") / "with ü")


def told(seen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is wrong; that what embedding needs besides is not there is the same for all of these."""
    bad = [found for found in seen["findings"] if found["status"] in {"warning", "error"}]
    return {found["code"]: found for found in bad if found["code"] not in {"packages-missing", "model-missing"}}


def packages(prefix: Path) -> Path:
    found = inventory.packages_folder(prefix)
    assert found is not None
    return found


def test_two_builds_over_one_folder(real: Real) -> None:
    """The CPU build on top, the fix doctor names in general, and what is left when one of two is removed."""
    prefix = real.make("both", "onnxruntime-gpu==1.26.0")
    real.install(prefix, "onnxruntime==1.26.0")
    seen = real.look(prefix)
    assert (told(seen)["duplicate-runtimes"]["status"], seen["runs_on"]) == ("error", "cpu")
    real.uv("pip", "uninstall", "--quiet", "--python", str(prefix), "onnxruntime")
    seen = real.look(prefix)
    assert told(seen)["runtime-hollow"]["runs_on"] == seen["runs_on"] == "none"
    real.uv("pip", "uninstall", "--quiet", "--python", str(prefix), "onnxruntime-gpu")
    real.install(prefix, "onnxruntime==1.26.0")
    assert told(real.look(prefix)) == {}


def test_the_gpu_build_without_its_libraries(real: Real) -> None:
    """It runs on the CPU; the library and the file that needs it are named. By choice it is no fault.

    Without a GPU nobody needs 2 GB of libraries: the CPU build is what helps, and it frees space.
    """
    prefix = real.make("gpu", "onnxruntime-gpu==1.31.1")
    seen = real.look(prefix)
    found = told(seen)
    assert set(found) == {"runtime-libs-missing"}
    assert "libonnxruntime_providers_cuda.so" in found["runtime-libs-missing"]["seen"]
    assert "nvidia-" not in found["runtime-libs-missing"]["fix"]
    assert "installs the CPU build, which frees" in found["runtime-libs-missing"]["fix"]
    assert seen["runs_on"] == "cpu"
    assert told(real.look(prefix, IMPRINT_DEVICE="cpu")) == {}


def test_a_provider_that_is_cut_short_or_empty(real: Real) -> None:
    prefix = real.make("cut", "onnxruntime-gpu==1.31.1")
    provider = packages(prefix) / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so"
    content = provider.read_bytes()
    provider.unlink()  # it is a link to the cache
    provider.write_bytes(content[: len(content) // 2])
    seen = real.look(prefix, IMPRINT_DEVICE="gpu")
    assert "install-incomplete" in told(seen)
    provider.write_bytes(b"")
    seen = real.look(prefix, IMPRINT_DEVICE="gpu")
    assert "install-incomplete" in told(seen)
    assert seen["runs_on"] == "cpu"


def test_the_main_library_is_gone(real: Real) -> None:
    prefix = real.make("short", "onnxruntime==1.31.1")
    next(packages(prefix).glob("onnxruntime/capi/onnxruntime_pybind11_state*")).unlink()
    seen = real.look(prefix)
    assert {"install-incomplete", "runtime-import-failed"} <= set(told(seen))
    assert seen["runs_on"] == "none"
    real.uv("pip", "install", "--quiet", "--offline", "--reinstall", "--python", str(prefix), "onnxruntime==1.31.1")
    assert told(real.look(prefix)) == {}


def test_an_install_that_is_killed(real: Real) -> None:
    """Installs are killed at random moments until one leaves a broken environment, and doctor names that."""
    real.make("warm", "onnxruntime==1.31.1", "onnxruntime-gpu==1.31.1")
    chance = random.Random(20261129)  # noqa: S311 - only to kill at other moments each time
    for _ in range(60):
        prefix = real.make("killed", "onnxruntime==1.31.1")
        argv = real.argv("pip", "install", "--offline", "--quiet", "--python", str(prefix), "onnxruntime-gpu==1.31.1")
        process = subprocess.Popen(argv, env=real.environ, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.02, 0.12))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if inventory.inspect(prefix).problems:
            break
    else:
        pytest.skip("no kill left anything broken on this machine")
    found = told(real.look(prefix))
    assert set(found) & {"install-incomplete", "duplicate-runtimes", "runtime-hollow", "metadata-damaged"}


def test_healthy_environments_raise_no_alarm(real: Real) -> None:
    """Real releases, old and new, with what people have beside them."""
    for number, pins in enumerate(
        (
            ("onnxruntime==1.31.1",),
            ("onnxruntime==1.32.0",),
            ("onnxruntime==1.26.0",),
            ("onnxruntime==1.22.1", "numpy==2.2.6"),
            ("onnxruntime==1.17.3", "numpy==1.26.4"),
            ("onnxruntime==1.31.1", "rich", "httpx", "pydantic"),
        )
    ):
        prefix = real.make(f"healthy{number}", *pins)
        seen = real.look(prefix)
        assert (pins, told(seen)) == (pins, {})
        assert seen["runs_on"] == "cpu"


def test_a_read_only_environment(real: Real) -> None:
    """It can be looked at and used; only a change that is planned is refused, before anything is started."""
    prefix = real.make("read-only", "onnxruntime==1.26.0")
    if subprocess.run([*IN_NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace here")
    script = f'mount --bind "{prefix}" "{prefix}" && mount -o remount,ro,bind "{prefix}" && exec "$@"'
    argv = [*IN_NAMESPACE, "sh", "-c", script, "sh", sys.executable, "-c", LOOK, str(real.home.root), str(prefix)]
    environ = {**real.environ, "PYTHONPATH": str(ROOT), "IMPRINT_DEVICE": "cpu"}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    seen = json.loads(ended.stdout)
    assert set(told(seen)) == {"install-tree-read-only"}
    assert "read-only file system" in told(seen)["install-tree-read-only"]["seen"]
    assert seen["runs_on"] == "cpu"


def test_a_disk_that_filled_up(real: Real) -> None:
    """The environment lies on a disk of 60 MB, too small for the build; doctor says how much to free."""
    real.make("warm-disk", "onnxruntime==1.31.1")
    if subprocess.run([*IN_NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace here")
    prefix = real.root / "small" / "env"
    shutil.rmtree(prefix.parent, ignore_errors=True)
    prefix.parent.mkdir()
    make = " ".join(f"'{word}'" for word in real.argv("venv", "--quiet", "--python", sys.executable, str(prefix)))
    install = " ".join(
        f"'{word}'" for word in real.argv("pip", "install", "--offline", "--python", str(prefix), "onnxruntime==1.31.1")
    )
    script = f"mount -t tmpfs -o size=60m none '{prefix.parent}' && {make} && ({install} || true) && exec \"$@\""
    argv = [*IN_NAMESPACE, "sh", "-c", script, "sh", sys.executable, "-c", LOOK, str(real.home.root), str(prefix)]
    environ = {**real.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    found = told(json.loads(ended.stdout))
    # uv writes several packages at once: which of them is cut short, or has no metadata yet, is chance.
    # Files of a package without metadata are nobody's, and setup refuses to write over them: that is said instead.
    incomplete = found.get("install-incomplete") or found["not-installed"]
    refused = "does not belong to any installed package" in incomplete["fix"]
    assert refused or "free at least" in incomplete["fix"]


def test_a_variable_that_puts_a_wrong_library_first(real: Real, tmp_path: Path) -> None:
    """Installing again changes nothing: the variable and its folder are named, and without it all is well."""
    prefix = real.make("loader", "onnxruntime==1.31.1")
    (tmp_path / "libstdc++.so.6").write_text("not a library", encoding="utf-8")
    found = told(real.look(prefix, LD_LIBRARY_PATH=str(tmp_path)))
    assert set(found) == {"loader-path-interferes"}
    assert str(tmp_path) in found["loader-path-interferes"]["seen"]
    assert "`unset LD_LIBRARY_PATH`" in found["loader-path-interferes"]["fix"]
    assert "--repair" not in found["loader-path-interferes"]["fix"]
    assert told(real.look(prefix)) == {}


def test_a_customization_that_prints_and_a_path_that_hides(real: Real, tmp_path: Path) -> None:
    """Imprint's own processes work; what the owner's programs meet is told, with the file or the variable."""
    prefix = real.make("customized", "onnxruntime==1.31.1")
    site = packages(prefix) / "sitecustomize.py"
    site.write_text("print('hello')\n", encoding="utf-8")
    found = told(real.look(prefix))
    assert set(found) == {"python-path-interferes"}
    assert str(site) in found["python-path-interferes"]["seen"]
    site.write_text("x = 1\n", encoding="utf-8")
    assert told(real.look(prefix)) == {}
    hello = packages(prefix) / "hello.pth"
    hello.write_text("import sys; print('hello')\n", encoding="utf-8")
    site.unlink()
    found = told(real.look(prefix))
    assert f"`{hello}` is loaded at every start" in found["python-path-interferes"]["seen"]
    assert found["python-path-interferes"]["fix"] == "remove or correct the named file"
    hello.unlink()
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").write_text("raise ImportError('another Python')\n", encoding="utf-8")
    seen = real.look(prefix, PYTHONPATH=str(tmp_path))
    found = told(seen)
    assert set(found) == {"python-path-interferes"}
    assert "another Python" in found["python-path-interferes"]["seen"]
    assert str(tmp_path) in found["python-path-interferes"]["seen"]
    assert "`PYTHONPATH`" in found["python-path-interferes"]["fix"]
    assert seen["runs_on"] == "cpu"


@pytest.mark.parametrize(
    ("mount", "code"),
    [("mount -t tmpfs -o noexec,size=300m none '{place}'", "noexec-disk"), ("umount -l /proc", "no-proc")],
)
def test_what_the_system_withholds(real: Real, mount: str, code: str) -> None:
    if subprocess.run([*IN_NAMESPACE, "true"], capture_output=True, check=False).returncode or os.geteuid():
        pytest.skip("no mount namespace here")
    prefix, place = real.make("withheld", "onnxruntime==1.31.1"), real.root / "place"
    place.mkdir(exist_ok=True)
    there = place / "env"
    copy = f"cp -a '{prefix}' '{there}'" if "{place}" in mount else f"ln -sfn '{prefix}' '{there}'"
    script = f'{mount.format(place=place)} && {copy} && exec "$@"'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", LOOK, str(real.home.root), str(there)]
    ended = subprocess.run(
        argv, env={**real.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    found = told(json.loads(ended.stdout))
    assert set(found) == {code}
    assert "--repair" not in found[code]["fix"]


def test_a_user_who_may_not_enter_or_start_anything(real: Real) -> None:
    """Neither is a bug of ours, and neither is mended by a repair."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    prefix = real.make("denied", "onnxruntime==1.31.1")
    for limit, code in ((None, "folder-denied"), (0, "process-limit")):
        locked = real.root / "locked"
        shutil.rmtree(locked, ignore_errors=True)
        locked.mkdir(mode=0o700)
        (locked / "env").symlink_to(prefix)
        found = as_nobody(real.home, locked / "env", limit)
        assert code in found, found
        assert all("--repair" not in (one["fix"] or "") for one in found.values())


def as_nobody(home: Home, prefix: Path, limit: int | None) -> dict[str, dict[str, Any]]:
    """Return what doctor finds in a fork that is another user, who may start `limit` more processes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            data = diagnose(Context(home, {"PATH": "/usr/bin"}), DoctorOptions(venv=prefix)).data
            os.write(writer, json.dumps(told(data), default=vars).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        text = answers.read()
    os.waitpid(pid, 0)
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found
