"""The real probe against a driver compiled from C: every status, every way such a driver can be sick."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from imprint.planning.model import Gpu, Nvidia
from imprint.probing.survey import survey
from support.fake_cuda import FakeDriver, compile_driver, device_line

A4000 = device_line(free=15000 << 20)
P1000 = device_line("Quadro P1000", "6.1", memory=4 << 30, pci="0000:0A:00.0", uuid="aa" * 16)
H100 = device_line("NVIDIA H100", "9.0", memory=80 << 30, pci="0000:03:00.0", uuid="bb" * 16)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib")


def ask(
    driver: FakeDriver,
    *lines: str,
    deadlines: tuple[float, ...] = (20.0,),
    environ: Mapping[str, str] | None = None,
) -> Nvidia:
    driver.play(*lines)
    return survey(driver.host(environ), deadlines=deadlines).nvidia


def test_a_healthy_driver(driver: FakeDriver) -> None:
    """Every field of a GPU and of the driver is read; the driver's chatter on standard output does no harm."""
    seen = ask(driver, "version 12080", "nvml_driver 570.133.07", "do cuInit print", A4000)
    gpu = Gpu(
        index=0,
        uuid="GPU-00112233-4455-6677-8899-aabbccddeeff",
        name="NVIDIA RTX A4000",
        compute_capability="8.6",
        memory_mib=16376,
        memory_free_mib=15000,
        integrated=False,
        mig=False,
        pci_bus_id="0000:01:00.0",
    )
    assert (seen.status, seen.error, seen.gpus) == ("ok", None, (gpu,))
    assert (seen.driver, seen.cuda) == ("570.133.07", "12.8")
    assert seen.libcuda == str(driver.folder.resolve() / "libcuda.so.1")


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        (["init 100"], "no-device", "CUDA_ERROR_NO_DEVICE"),
        (["init 101"], "bad-visible-devices", "CUDA_ERROR_INVALID_DEVICE"),
        (["init 803"], "driver-mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (["init 999", "nvml_init 18"], "driver-mismatch", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        (["init 804"], "compat-unsupported", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
        (["init 999"], "uvm-unavailable", "CUDA_ERROR_UNKNOWN"),
        (["init 802"], "error", "CUDA_ERROR_SYSTEM_NOT_READY"),
        (["init 12345"], "error", "12345"),
        (["init 34"], "none", "stub"),
        (["count_code 3"], "error", "cuDeviceGetCount answered 3"),
        ([], "no-device", "0 devices"),
        (["do cuInit segv"], "error", "SIGSEGV"),
        (["do cuInit abort"], "error", "SIGABRT"),
        (["do cuDeviceGetName segv", A4000], "error", "SIGSEGV"),
        (["do nvmlInit_v2 abort", A4000], "error", "SIGABRT"),
        (["do cuInit exit"], "error", "exit code 7"),
        (["do cuInit leave"], "error", "cannot be read"),
        (["do cuInit garbage"], "error", "cannot be read"),
        (["do cuInit flood"], "error", "far more"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_every_answer_has_its_status(driver: FakeDriver, lines: list[str], status: str, words: str) -> None:
    """What the driver answers, or how it dies, is told by status and named in the error."""
    seen = ask(driver, *lines)
    assert seen.status == status
    assert words in (seen.error or "")
    assert not seen.gpus


def test_a_hang_is_a_timeout_and_is_tried_twice(driver: FakeDriver) -> None:
    """The deadline ends a hanging driver; the retry has the longer time; the answer says timeout, not none."""
    began = time.monotonic()
    seen = ask(driver, "do cuInit hang", deadlines=(0.5, 1.0))
    assert 1.5 <= time.monotonic() - began < 8
    assert seen.status == "timeout"


def test_a_crash_is_not_tried_again(driver: FakeDriver) -> None:
    """Only a used-up deadline is worth a second try."""
    began = time.monotonic()
    assert ask(driver, "do cuInit segv", deadlines=(20.0, 40.0)).status == "error"
    assert time.monotonic() - began < 10


def test_gpus_come_in_pci_order(driver: FakeDriver) -> None:
    """CUDA lists the fastest first; the document numbers by PCI address, in small letters."""
    seen = ask(driver, "honour 1", H100, A4000, P1000)
    assert [(gpu.index, gpu.name, gpu.pci_bus_id) for gpu in seen.gpus or ()] == [
        (0, "NVIDIA RTX A4000", "0000:01:00.0"),
        (1, "NVIDIA H100", "0000:03:00.0"),
        (2, "Quadro P1000", "0000:0a:00.0"),
    ]


def test_visible_devices_mean_what_they_mean_to_a_process_here(driver: FakeDriver) -> None:
    """Without CUDA_DEVICE_ORDER index 0 is the fastest GPU: the probe must not renumber what the user's list names."""
    for environ, name in (
        ({"CUDA_VISIBLE_DEVICES": "0"}, "NVIDIA H100"),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "NVIDIA RTX A4000"),
    ):
        seen = ask(driver, "honour 1", H100, A4000, environ=environ)
        assert [gpu.name for gpu in seen.gpus or ()] == [name]
    both = ask(driver, "honour 1", H100, A4000, environ={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert [gpu.name for gpu in both.gpus or ()] == ["NVIDIA RTX A4000", "NVIDIA H100"]


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_visible_devices_that_ask_for_none(driver: FakeDriver, value: str) -> None:
    """Hiding all GPUs on purpose is no-device; the driver's level is still read."""
    seen = ask(driver, "honour 1", "nvml_driver 570.133.07", A4000, environ={"CUDA_VISIBLE_DEVICES": value})
    assert (seen.status, seen.driver, seen.cuda) == ("no-device", "570.133.07", "12.8")


def test_visible_devices_that_name_nothing(driver: FakeDriver) -> None:
    """An index that no GPU has looks like no device to CUDA; the probe finds out that the list is at fault."""
    seen = ask(driver, "honour 1", A4000, environ={"CUDA_VISIBLE_DEVICES": "7"})
    assert seen.status == "bad-visible-devices"
    assert "CUDA_VISIBLE_DEVICES=7" in (seen.error or "")


def test_visible_devices_where_there_is_no_gpu_at_all(driver: FakeDriver) -> None:
    """The same list on a machine without a device stays no-device."""
    assert ask(driver, "honour 1", environ={"CUDA_VISIBLE_DEVICES": "7"}).status == "no-device"


def test_a_mig_slice(driver: FakeDriver) -> None:
    """A slice is told by its own UUID, its parent's being another one, and is named MIG-."""
    slice_line = device_line("NVIDIA A100-SXM4-40GB", "8.0", uuid="cc" * 16, whole="dd" * 16, free=1 << 30)
    seen = ask(driver, slice_line)
    assert [(gpu.uuid, gpu.mig, gpu.memory_free_mib) for gpu in seen.gpus or ()] == [
        ("MIG-cccccccc-cccc-cccc-cccc-cccccccccccc", True, 1024)
    ]


def test_one_gpu_is_lost(driver: FakeDriver) -> None:
    """A GPU that has fallen off the bus takes nothing from the others, and is mentioned."""
    seen = ask(driver, "lost 0", A4000, P1000)
    assert (seen.status, [gpu.name for gpu in seen.gpus or ()]) == ("ok", ["Quadro P1000"])
    assert "cuDeviceGet answered 46" in (seen.error or "")


def test_an_old_driver_without_nvml(tmp_path: Path) -> None:
    """Functions that a driver lacks, and NVML itself, only cost what they alone know."""
    old = compile_driver(tmp_path / "lib", nvml=False, defines=("OLD_DRIVER",))
    seen = ask(old, "version 11000", P1000)
    assert (seen.status, seen.cuda, seen.driver) == ("ok", "11.0", None)
    assert [(gpu.pci_bus_id, gpu.memory_free_mib) for gpu in seen.gpus or ()] == [("0000:0a:00.0", None)]
    assert (seen.gpus or ())[0].uuid == "GPU-" + "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"


def test_a_truncated_library(driver: FakeDriver, tmp_path: Path) -> None:
    """A library cut short is a sick driver, not an absent one."""
    folder = tmp_path / "cut"
    folder.mkdir()
    (folder / "libcuda.so.1").write_bytes((driver.folder / "libcuda.so.1").read_bytes()[:40])
    seen = survey(driver.host({"LD_LIBRARY_PATH": str(folder)})).nvidia
    assert (seen.status, "cannot be loaded" in (seen.error or "")) == ("error", True)


def test_a_stub_is_never_loaded(driver: FakeDriver, tmp_path: Path) -> None:
    """A toolkit's stubs folder first on the path neither hides the driver nor counts as one."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    (folder / "libcuda.so.1").write_text("not even a library", encoding="utf-8")
    driver.play(A4000)
    both = driver.host({"LD_LIBRARY_PATH": f"{folder}:{driver.folder}"})
    assert survey(both).nvidia.status == "ok"
    alone = driver.host({"LD_LIBRARY_PATH": str(folder)})
    assert survey(alone).nvidia.status != "error"


def test_versioned_library_names_tell_a_mismatch_apart(driver: FakeDriver, tmp_path: Path) -> None:
    """After an upgrade without a reboot NVML cannot say its version; the file's own name does."""
    folder = tmp_path / "real"
    folder.mkdir()
    for stem in ("libcuda.so", "libnvidia-ml.so"):
        (folder / f"{stem}.550.107.02").write_bytes((driver.folder / f"{stem}.1").read_bytes())
        (folder / f"{stem}.1").symlink_to(f"{stem}.550.107.02")
    driver.play("init 803", "nvml_init 18")
    seen = survey(driver.host({"LD_LIBRARY_PATH": str(folder)})).nvidia
    assert (seen.status, seen.driver) == ("driver-mismatch", "550.107.02")
    assert (seen.libcuda or "").endswith("/libcuda.so.550.107.02")
