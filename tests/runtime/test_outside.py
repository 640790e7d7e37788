"""What the loader, Python and the system say of causes outside an environment, and what is never taken for one."""

import re
from pathlib import Path

import pytest

from imprint.causes.circumstances import here
from imprint.embedding.client import failure_of
from imprint.provisioning.run import _not_used
from imprint.runtime.check.outside import outside_cause
from imprint.runtime.check.result import CPU, CheckResult
from imprint.runtime.installer.uv_failures import classify
from imprint.situation.checked import failure_of as check_failure

LINUX = here({}, system="linux")


def test_only_what_this_user_may_not_read_is_called_that(tmp_path: Path) -> None:
    """A folder and a pipe that are to be run are refused in the same words."""
    for text in ("[Errno 13] Permission denied: '{}'", "{}: cannot open shared object file: Permission denied"):
        assert outside_cause(text.format(tmp_path), {}) is None
        found = outside_cause(text.format(tmp_path / "nothing"), {})
        assert found is not None
        assert found.code == "file-denied"


@pytest.mark.parametrize(
    ("text", "environ", "code"),
    [
        ("libgomp.so.1: cannot open shared object file: No such file or directory", {}, "system-library-missing"),
        (
            "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /v/x.so)",
            {},
            "system-library-old",
        ),
        ("libstdc++.so.6: version `GLIBCXX_3.4.30' not found", {}, "system-library-old"),
        ("No module named '_ctypes'", {}, "python-module-missing"),
        ("/h/v/x.so: failed to map segment from shared object", {}, "noexec-disk"),
        (
            "libonnxruntime.so.1: cannot enable executable stack as shared object requires: Invalid argument",
            {},
            "exec-stack-refused",
        ),
        (
            "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 2: Resource temporarily unavailable",
            {},
            "process-limit",
        ),
        ("RuntimeError: can't start new thread", {}, "process-limit"),
        ("Fail: Secure opened-file canonicalization requires procfs", {}, "no-proc"),
        (
            "ERROR: ld.so: object '/opt/a.so' from LD_PRELOAD cannot be preloaded",
            {"LD_PRELOAD": "/opt/a.so"},
            "loader-path-interferes",
        ),
        ("/opt/x/libgomp.so.1: file too short", {"LD_LIBRARY_PATH": "/opt/x"}, "loader-path-interferes"),
        ("/opt/x/libgomp.so.1: invalid ELF header", {"LD_LIBRARY_PATH": "/lib:/opt/x/"}, "loader-path-interferes"),
    ],
)
def test_a_cause_outside_is_recognised(text: str, environ: dict[str, str], code: str) -> None:
    found = outside_cause(f"ImportError: {text}\nmore", environ)
    assert found is not None
    assert found.code == code
    fix = found.fix(LINUX.with_("named"))
    assert fix
    assert "--repair" not in fix
    assert not re.search(r"[{}]|\b(FILE|FOLDER|PATH)\b", fix)


def test_embedding_without_proc_is_no_fault_of_the_model() -> None:
    message = "Fail: [ONNXRuntimeError] : 1 : FAIL : Secure opened-file canonicalization requires procfs"
    error = failure_of({"code": "model-unusable", "message": message}, "imprint setup", {})
    assert error.specific_code == "no-proc"
    assert "/proc is not mounted" in error.message
    assert "mount -t proc" in str(error.hint)


MAPPED = "ImportError: /h/v/x.so: failed to map segment from shared object"


@pytest.mark.parametrize(
    ("repair", "what"), [("imprint setup --repair", "IMPRINT_HOME"), ("imprint setup --venv V", "environment")]
)
def test_who_embeds_from_a_disk_that_runs_nothing_is_told_what_helps(repair: str, what: str) -> None:
    hint = failure_of({"code": "worker-failed", "message": MAPPED}, repair, {}).hint
    assert hint is not None
    assert what in hint


@pytest.mark.parametrize(("where", "what"), [("home/runtimes/x", "IMPRINT_HOME"), ("env", "environment")])
def test_who_installs_on_a_disk_that_runs_nothing_is_told_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, what: str
) -> None:
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    error = classify(1, f"error: {MAPPED}", where=tmp_path / where)
    assert error.specific_code == "noexec-disk"
    assert what in str(error.hint)


@pytest.mark.parametrize(
    "text",
    [
        "libcublasLt.so.13: cannot open shared object file: No such file or directory",
        "libcudnn.so.9: cannot open shared object file: No such file or directory",
        "libcuda.so.1: cannot open shared object file: No such file or directory",
        "libonnxruntime.so.1.31.1: cannot open shared object file: No such file or directory",
        "libscipy_openblas64_-32a4b2a6.so: cannot open shared object file: No such file or directory",
        "No module named 'numpy'",
        "No module named 'onnxruntime'",
        "/v/lib/onnxruntime.so: file too short",
        "libonnxruntime.so.1: invalid ELF header",
        "",
    ],
)
def test_what_installing_mends_is_no_cause_outside(text: str) -> None:
    assert outside_cause(text, {"LD_LIBRARY_PATH": "/opt/x"}) is None


def test_the_package_of_the_system_is_named_where_it_is_known() -> None:
    found = outside_cause("libgomp.so.1: cannot open shared object file: No such file or directory", {})
    assert found is not None
    debian = here({}, system="linux").with_("debian", sudo="sudo ")
    assert found.fix(debian) == "`sudo apt-get install libgomp1`"
    other = here({}, system="linux")
    plain = found.fix(type(other)(other.traits - {"debian", "fedora"}, other.words))
    assert plain == "install the system package that provides `libgomp.so.1`"


def test_a_failed_check_names_a_repair_only_where_that_can_help() -> None:
    said = "libgomp.so.1: cannot open shared object file: No such file or directory"
    outside = check_failure(CheckResult("failed", "import-failed", CPU, None, said))
    inside = check_failure(CheckResult("failed", "import-failed", CPU, None, "libonnxruntime.so.1: invalid ELF header"))
    assert "--repair" not in (outside.hint or "")
    assert "libgomp1" in (outside.hint or "") or "libgomp.so.1" in (outside.hint or "")
    assert "--repair" in (inside.hint or "")


def test_a_new_runtime_that_cannot_load_here_is_told_what_helps() -> None:
    error = _not_used(CheckResult("failed", "import-failed", CPU, None, MAPPED))
    assert str(error.hint).startswith("nothing was changed; set `IMPRINT_HOME` to a folder on a disk that allows")
    other = _not_used(CheckResult("failed", "import-failed", CPU, None, "something else"))
    assert other.hint == "nothing was changed; run `imprint doctor` to find the cause"


def test_an_installer_that_may_start_nothing_says_so(tmp_path: object) -> None:
    error = classify(2, "error: failed to spawn: Resource temporarily unavailable (os error 11)", where=tmp_path)  # type: ignore[arg-type]
    assert error.specific_code == "process-limit"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            (
                "[ONNXRuntimeError] : 1 : FAIL : Load model from /h/m.onnx failed:model.cc:179 Model "
                "Unsupported model IR version: 14, max supported IR version: 10"
            ),
            "the model has ONNX IR version 14, but ONNX Runtime 1.22.0 reads only up to 10",
        ),
        (
            (
                "ONNX Runtime only *guarantees* support for models stamped with official released onnx opset versions. "
                "Opset 28 is under development and support for this is limited. Current official support for domain "
                "ai.onnx is till opset 26."
            ),
            "the model has ONNX opset 28, but ONNX Runtime 1.22.0 reads only up to 26",
        ),
    ],
)
def test_a_model_that_is_newer_than_the_runtime_is_called_that(message: str, told: str) -> None:
    facts = {"code": "model-unusable", "message": message, "version": "1.22.0"}
    own = failure_of(facts, "imprint setup --venv /v", {})
    assert (own.specific_code, own.message, own.hint) == ("model-too-new", told, "run `imprint setup --venv /v`")
    managed = failure_of(facts, "imprint setup --repair", {})
    assert "--repair" not in (managed.hint or "")
    assert "model list" in (managed.hint or "")
