"""What every child in a target is started with: quiet, isolated, one GPU, and the same for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.embedding.client import Settings, worker_arguments, worker_environment
from imprint.planning.model import Device
from imprint.runtime.check.children import child_arguments, child_environment, pinned_to

ENVIRON = {"PATH": "/bin", "PYTHONPATH": "/evil", "CUDA_VISIBLE_DEVICES": "1", "LD_LIBRARY_PATH": "/lib"}
GPU = Device(0, "GPU-1", "NVIDIA T4")
SETTINGS = Settings(Path("python"), Path("model"), Path("tokenizer"), 384, environ=ENVIRON)


@pytest.mark.parametrize("asked", ["0", "", "no", None])
def test_onnx_runtime_is_told_not_to_send_whatever_the_surroundings_say(asked: str | None) -> None:
    environ = ENVIRON if asked is None else ENVIRON | {"ORT_DISABLE_TELEMETRY": asked}
    assert child_environment(environ)["ORT_DISABLE_TELEMETRY"] == "1"
    settings = Settings(Path("python"), Path("model"), Path("tokenizer"), 384, environ=environ)
    assert worker_environment(settings)["ORT_DISABLE_TELEMETRY"] == "1"


def test_nothing_of_python_s_own_variables_reaches_a_child() -> None:
    assert "PYTHONPATH" not in child_environment(ENVIRON)
    assert child_arguments(Path("p"), "check", "x")[:4] == ["p", "-I", "-B", "-c"]
    assert worker_arguments(SETTINGS)[:4] == ["python", "-I", "-B", "-c"]


def test_a_stub_for_linking_is_taken_off_the_loader_s_path() -> None:
    toolkit = ENVIRON | {"LD_LIBRARY_PATH": "/cuda/lib64/stubs:/lib:/cuda/stubs/"}
    assert child_environment(toolkit, GPU)["LD_LIBRARY_PATH"] == "/lib"
    assert child_environment(ENVIRON)["LD_LIBRARY_PATH"] == "/lib"


@pytest.mark.parametrize(
    ("device", "environ", "pinned"),
    [
        (GPU, {}, {"CUDA_VISIBLE_DEVICES": "GPU-1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        (GPU, {"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": "GPU-1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        (Device(3, None, None), {}, {"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        # The survey counts among what the list leaves, so 0 there is not GPU 0 of the machine.
        (Device(0, None, None), {"CUDA_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "2"}),
        (
            Device(0, None, None),
            {"CUDA_VISIBLE_DEVICES": "3, 1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            {"CUDA_VISIBLE_DEVICES": "1"},
        ),
        (Device(5, None, None), {"CUDA_VISIBLE_DEVICES": "1"}, {}),
        (Device(None, None, None), {}, {}),
    ],
)
def test_check_and_worker_see_the_same_one_gpu(device: Device, environ: dict[str, str], pinned: dict[str, str]) -> None:
    assert pinned_to(device, environ) == pinned
    settings = Settings(Path("p"), Path("m"), Path("t"), 384, gpu=device, environ=environ)
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
    worker, check = worker_environment(settings), child_environment(environ, device)
    assert {name: worker.get(name) for name in names} == {name: check.get(name) for name in names}
    assert {name: check[name] for name in pinned} == pinned


def test_a_worker_on_the_cpu_sees_no_gpu_and_a_check_on_the_cpu_leaves_them() -> None:
    assert worker_environment(SETTINGS)["CUDA_VISIBLE_DEVICES"] == ""
    assert child_environment(ENVIRON)["CUDA_VISIBLE_DEVICES"] == "1"
