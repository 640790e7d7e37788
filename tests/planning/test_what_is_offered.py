"""Devices, choices and explanations: what a person is told before deciding."""

from __future__ import annotations

from imprint.planning.choices import DeviceBuild, device_choices, devices, gpu_device_choices
from imprint.planning.explain import explain
from imprint.planning.fingerprints import complete_verdict, fingerprint_of
from imprint.planning.model import (
    Choice,
    Device,
    Fingerprint,
    Gpu,
    Installed,
    Libc,
    Machine,
    Nvidia,
    Plan,
    Platform,
    Python,
    Request,
    Verdict,
)
from imprint.planning.rule import decide
from imprint.values import replace
from imprint.words import NvidiaStatus
from planning.conftest import CHECK, TABLE

AMPERE = Gpu(0, "GPU-a", "RTX 3060", "8.6", 12288)
PASCAL = Gpu(1, "GPU-p", "GTX 1060", "6.1", 6144)
KEPLER = Gpu(2, "GPU-k", "GT 730", "3.5", 2048)
LINUX = Platform("linux", "x86_64", Libc("glibc", "2.35"))


def machine(*gpus: Gpu, driver: str = "580.65.06", status: NvidiaStatus = "ok", platform: Platform = LINUX) -> Machine:
    return Machine(platform=platform, python=Python("3.12.4", "cp312"), nvidia=Nvidia(status, driver, gpus=gpus))


def test_each_gpu_has_its_builds_or_its_reason() -> None:
    reports = devices(machine(KEPLER, PASCAL, AMPERE), TABLE)
    assert [one.name for one in reports] == [AMPERE.name, PASCAL.name, KEPLER.name]
    assert [one.code for one in reports] == ["gpu-native", "gpu-native", "compute-capability-unsupported"]
    assert reports[0].builds == tuple(DeviceBuild(name, "native") for name in ("cuda13", "cuda13-1.28", "cuda12"))
    assert reports[1].builds == (DeviceBuild("cuda12", "native"),)
    assert reports[2].builds == ()
    assert "GT 730 (compute capability 3.5)" in reports[2].reason


def test_a_gpu_without_index_or_uuid_is_reported_too() -> None:
    (report,) = devices(machine(Gpu(name="bare", compute_capability="12.1")), TABLE)
    assert report.builds == (DeviceBuild("cuda13-1.28", "ptx"), DeviceBuild("cuda12", "ptx"))
    assert devices(Machine(), TABLE) == ()


def test_choices_of_the_device_where_a_gpu_can_be_used() -> None:
    cpu, gpu, auto = device_choices(Request(), machine(AMPERE), TABLE, (), Installed("cpu", "1.31.1"))
    assert cpu == Choice("cpu", available=True, detail="model.device is cpu; the CPU build 1.31.1 is installed")
    plan = decide(Request("gpu"), machine(AMPERE), TABLE, (), None)
    assert gpu.available
    assert str(gpu.detail).startswith(f"{plan.reason}; installs the CUDA 13 build 1.31.1")
    assert auto.detail == gpu.detail


def test_choices_of_the_device_where_none_can() -> None:
    cpu, gpu, auto = device_choices(Request(), machine(status="none"), TABLE, (), None)
    assert cpu.available
    assert gpu == Choice("gpu", available=False, reason="no NVIDIA GPU and no NVIDIA driver were found")
    assert auto.available
    assert str(auto.detail).startswith("CPU here: no NVIDIA GPU")


def test_no_choice_where_no_build_exists() -> None:
    musl = machine(AMPERE, platform=Platform("linux", "x86_64", Libc("musl", "1.2")))
    choices = device_choices(Request(), musl, TABLE, (), None)
    assert [(one.available, bool(one.detail)) for one in choices] == [(False, False)] * 3
    assert all("musl" in str(one.reason) for one in choices)


def test_a_gpu_build_that_is_kept_for_now_is_a_choice() -> None:
    away = machine(status="no-device")
    _, gpu, _ = device_choices(Request(), away, TABLE, (), Installed("cuda13", "1.31.1"))
    assert gpu.available


def test_choices_of_the_gpu() -> None:
    nameless = Gpu(None, None, "nameless", "8.6")
    by_uuid = Gpu(None, "GPU-u", "by its UUID", "8.6")
    choices = gpu_device_choices(Request(), machine(KEPLER, PASCAL, AMPERE, by_uuid, nameless), TABLE, (), None)
    assert [(one.value, one.available) for one in choices] == [
        ("auto", True),
        ("0", True),
        ("1", True),
        ("2", False),
        ("GPU-u", True),
    ]
    assert "GT 730" in str(choices[3].reason)


def test_a_gpu_that_is_asked_for_and_not_here_is_a_choice_that_is_refused() -> None:
    choices = gpu_device_choices(Request("gpu", "5"), machine(AMPERE), TABLE, (), None)
    assert [(one.value, one.available) for one in choices] == [("auto", True), ("0", True), ("5", False)]
    assert choices[2].reason == "model.gpu_device is 5, and the GPUs here are 0 (RTX 3060, GPU-a)"
    (_, refused) = gpu_device_choices(Request("gpu", "5"), machine(status="none"), TABLE, (), None)
    assert refused.reason == "no NVIDIA GPU and no NVIDIA driver were found"


def test_sizes_are_told_where_they_are_known() -> None:
    for size, said in ((1_357_000_000, "1.4 GB"), (23_800_000, "24 MB"), (400, "400 B")):
        cpu = TABLE.cpu
        wheels = tuple(replace(wheel, download_bytes=size) for wheel in cpu.wheels)
        table = replace(TABLE, builds=(*TABLE.cuda, replace(cpu, wheels=wheels)))
        choice, *_ = device_choices(Request(), machine(), table, (), None)
        assert choice.detail == f"model.device is cpu; installs the CPU build 1.31.1, a download of {said}"


def test_sizes_of_a_change() -> None:
    def sized(table_of: int) -> tuple[Plan, Plan]:
        builds = tuple(
            replace(
                build,
                wheels=tuple(replace(wheel, installed_bytes=table_of * len(build.name)) for wheel in build.wheels),
            )
            for build in TABLE.builds
        )
        table = replace(TABLE, builds=builds)
        away = decide(Request("cpu"), machine(AMPERE), table, (), Installed("cuda13", "1.31.1"))
        there = decide(Request("gpu"), machine(AMPERE), table, (), Installed("cpu", "1.31.1"))
        return away, there

    away, there = sized(100)
    assert (away.installed_bytes, away.free_bytes_after_prune) == (300, 300)
    assert (there.installed_bytes, there.free_bytes_after_prune) == (600, 0)
    cpu = replace(TABLE.cpu, wheels=tuple(replace(wheel, installed_bytes=None) for wheel in TABLE.cpu.wheels))
    half = replace(TABLE, builds=(*TABLE.cuda, cpu))
    assert decide(Request("cpu"), machine(AMPERE), half, (), Installed("cuda13")).free_bytes_after_prune is None
    unknown = decide(Request("cpu"), machine(AMPERE), TABLE, (), Installed("something", "1"))
    assert unknown.free_bytes_after_prune is None
    older = decide(Request("cpu"), machine(AMPERE), TABLE, (), Installed("cuda13", "1.30.0"))
    assert older.free_bytes_after_prune is None


def outcomes(request: Request, seen: Machine, verdicts: tuple[Verdict, ...] = ()) -> dict[str, dict[str, str]]:
    explained = explain(request, seen, TABLE, verdicts)
    found: dict[str, dict[str, str]] = {}
    for gate in explained:
        found.setdefault(gate.build, {})[gate.gate] = gate.outcome
    return found


def test_every_gate_of_every_build_is_explained() -> None:
    gates = outcomes(Request("auto"), machine(PASCAL))
    assert list(gates) == ["cuda13", "cuda13-1.28", "cuda12", "cuda12-py310", "cpu"]
    assert list(gates["cuda13"].items())[-3:] == [("driver", "pass"), ("device", "refused"), ("check", "not-reached")]
    assert set(gates["cuda12"].values()) == set(gates["cpu"].values()) == {"pass"}
    assert gates["cuda12-py310"]["python"] == "refused"
    assert gates["cuda12-py310"]["abi"] == "not-reached"
    assert "tegra" not in gates["cpu"]


def test_with_the_cpu_asked_for_no_gate_of_a_gpu_build_is_reached() -> None:
    gates = outcomes(Request("cpu"), machine(AMPERE))
    assert list(gates["cuda13"].values()) == ["refused"] + ["not-reached"] * 9
    assert set(gates["cpu"].values()) == {"pass"}


def test_builds_after_the_chosen_one_are_not_checked() -> None:
    gates = outcomes(Request("auto"), machine(AMPERE))
    assert gates["cuda13"]["check"] == "pass"
    assert (gates["cuda12"]["device"], gates["cuda12"]["check"]) == ("pass", "not-reached")


def test_builds_after_a_failed_check_are_not_checked() -> None:
    seen = machine(AMPERE)
    failed = Verdict("cuda13", "failed", "crashed", None, fingerprint_of("cuda13", AMPERE, seen, TABLE))
    gates = outcomes(Request("auto"), seen, (failed,))
    assert (gates["cuda13"]["check"], gates["cuda12"]["check"]) == ("refused", "not-reached")


def test_without_a_cpu_wheel_the_cpu_build_says_why() -> None:
    gates = outcomes(Request("auto"), machine(AMPERE, platform=replace(LINUX, arch="riscv64")))
    assert gates["cpu"] == {
        "os": "pass",
        "arch": "refused",
        "libc": "not-reached",
        "python": "not-reached",
        "abi": "not-reached",
    }


def test_the_fingerprint_of_a_plan_is_that_of_its_gpu() -> None:
    seen = machine(PASCAL, AMPERE)
    plan = decide(Request("auto"), seen, TABLE, (), None)
    expected = Fingerprint("cuda13", "digest of cuda13.txt", "GPU-a", "RTX 3060", "8.6", "580.65.06", "3.12.4", CHECK)
    assert fingerprint_of(plan, None, seen, TABLE) == fingerprint_of("cuda13", AMPERE, seen, TABLE) == expected


def test_what_is_not_known_is_not_in_a_fingerprint() -> None:
    plan = decide(Request("cpu"), machine(AMPERE), TABLE, (), None)
    assert fingerprint_of(plan, None, machine(AMPERE), TABLE).gpu_uuid is None
    gone = replace(plan, device=Device(9, "GPU-gone", None))
    assert fingerprint_of(gone, None, machine(AMPERE), TABLE).gpu_uuid is None
    assert fingerprint_of(replace(plan, build=None), None, Machine(), TABLE) == Fingerprint(check=CHECK)
    assert fingerprint_of("something", AMPERE, machine(AMPERE), TABLE).lock is None


def test_a_gpu_that_is_given_comes_before_the_one_of_the_plan() -> None:
    seen = machine(PASCAL, AMPERE)
    plan = decide(Request("auto"), seen, TABLE, (), None)
    assert fingerprint_of(plan, PASCAL, seen, TABLE).gpu_uuid == "GPU-p"
    assert fingerprint_of("cuda13", None, seen, TABLE).gpu_uuid is None
    assert fingerprint_of("cuda13", AMPERE, replace(seen, python=Python(None, "cp312")), TABLE).python is None


def test_a_what_if_is_about_the_gpu_that_its_build_would_run_on() -> None:
    large = replace(PASCAL, memory_mib=24576)
    bare = Verdict("cuda13", "failed")
    assert complete_verdict(bare, (), machine(large, AMPERE), TABLE).fingerprint.gpu_uuid == "GPU-a"
    asked = Request("gpu", "1")
    assert (
        complete_verdict(replace(bare, build="cuda12"), (), machine(large, AMPERE), TABLE, asked).fingerprint.gpu_uuid
        == "GPU-p"
    )
    away = machine(AMPERE, large, status="timeout")
    assert complete_verdict(bare, (), away, TABLE).fingerprint.gpu_uuid == "GPU-p"
    assert complete_verdict(bare, (), Machine(), TABLE).fingerprint.gpu_uuid is None


def test_a_special_interpreter_is_an_environment_of_its_own() -> None:
    free = replace(machine(AMPERE), python=Python("3.13.2", "cp313t"))
    assert fingerprint_of("cuda13", AMPERE, free, TABLE).python == "3.13.2 (cp313t)"


def test_a_what_if_is_completed_from_the_gpu_it_names() -> None:
    seen = machine(AMPERE, PASCAL)
    about = Verdict("cuda13", "failed", fingerprint=Fingerprint(gpu_name="GTX 1060"))
    found = complete_verdict(about, {"gpu_name"}, seen, TABLE).fingerprint
    assert (found.gpu_uuid, found.compute_capability) == ("GPU-p", "6.1")
    anything = complete_verdict(Verdict("cuda13", "failed"), (), seen, TABLE).fingerprint
    assert anything == fingerprint_of("cuda13", AMPERE, seen, TABLE)
    elsewhere = Verdict("cuda13", "failed", fingerprint=Fingerprint(gpu_uuid="GPU-other"))
    assert complete_verdict(elsewhere, {"gpu_uuid"}, seen, TABLE).fingerprint.gpu_name is None
    unheard = complete_verdict(Verdict("something", "failed"), (), seen, TABLE).fingerprint
    assert (unheard.build, unheard.lock) == ("something", None)
