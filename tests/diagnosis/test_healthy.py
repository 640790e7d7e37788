"""What is right raises no alarm: healthy machines and choices, from recorded facts."""

from typing import Any

import pytest

from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.findings import counts
from support.recorded import BASES, facts_from_json

CPU_PLAN = {"build": "cpu", "version": "1.31.1", "device": None}
BY_CHOICE = {**CPU_PLAN, "code": "device-cpu", "reason": "model.device is cpu"}
ON_CPU = {"session": ["CPUExecutionProvider"], "missing": "libcuda.so.1"}
NO_GPU: dict[str, Any] = {
    "status": "none",
    "driver": None,
    "kernel_driver": None,
    "cuda": None,
    "libcuda": None,
    "gpus": [],
}
HOST_DRIVER: dict[str, Any] = {"status": "none", "driver": None, "kernel_driver": "580.95.05", "gpus": []}

HEALTHY: dict[str, dict[str, Any]] = {
    "the CPU by default": {"on": "managed"},
    "the GPU that was asked for": {"on": "managed-gpu"},
    "somebody's environment with the CPU build": {"on": "environment"},
    "somebody's environment with the GPU build in use": {"on": "gpu-environment"},
    "the GPU build on purpose, on a machine without a GPU": {
        "on": "gpu-environment",
        "device_asked": "cpu",
        "device_set": False,
        "plan": BY_CHOICE,
        "proved": False,
        "machine": {"nvidia": NO_GPU},
        "loaded": ON_CPU,
        "nodes": {"present": []},
    },
    "the GPU build with the CPU chosen on a GPU machine": {
        "on": "gpu-environment",
        "device_asked": "cpu",
        "device_set": True,
        "plan": BY_CHOICE,
        "proved": False,
    },
    "the GPU build without libraries, and the CPU chosen": {
        "on": "gpu-environment",
        "device_asked": "cpu",
        "device_set": True,
        "plan": BY_CHOICE,
        "proved": False,
        "loaded": {"session": ["CPUExecutionProvider"], "missing": "libcublasLt.so.13", "libraries": []},
    },
    "torch beside it, with libraries of its own": {
        "on": "gpu-environment",
        "runtimes": {
            "versions": {
                "onnxruntime-gpu": "1.31.1",
                "torch": "2.9.0",
                "nvidia-cublas": "13.0.2.14",
                "nvidia-nccl-cu13": "2.28.0",
            }
        },
        "loaded": {
            "libraries": [
                ["libcublasLt.so.13", "torch", "/x/torch/lib/libcublasLt.so.13", True, True],
                ["libcudart.so.13", "wheel", "/x/nvidia/cu13/lib/libcudart.so.13", True, True],
            ]
        },
    },
    "libraries from the system's toolkit, all of them": {
        "on": "gpu-environment",
        "loaded": {"libraries": [["libcublasLt.so.13", "system", "/usr/lib/libcublasLt.so.13", True, True]]},
    },
    "newer libraries than ours that work": {
        "on": "gpu-environment",
        "tested": {"nvidia-cublas": "13.0.2.14"},
        "runtimes": {"versions": {"onnxruntime-gpu": "1.31.1", "nvidia-cublas": "13.8.0.4"}},
    },
    "an older release that runs": {
        "on": "environment",
        "installed_build": None,
        "runtimes": {"builds": ["onnxruntime 1.22.1"]},
        "loaded": {"version": "1.22.1"},
        "plan": {**BY_CHOICE, "pending": True, "installed": {"build": "cpu", "version": "1.22.1"}},
    },
    "a Python that Imprint has no build for, and ONNX Runtime runs": {
        "on": "environment",
        "interpreter": {"version": "3.9.18", "made_for": "3.9"},
        "plan": {"build": None, "code": "python-no-wheel", "reason": "ONNX Runtime has no wheel for Python 3.9"},
    },
    "nodes on the CPU that belong there": {
        "on": "managed-gpu",
        "loaded": {"talk": "[W] Some nodes were not assigned to the preferred execution providers"},
    },
    "a container without a GPU on a host with one, and the CPU by choice": {
        "on": "managed",
        "machine": {"platform": {"container": True}, "nvidia": HOST_DRIVER},
    },
    "a container on any host": {"on": "managed", "machine": {"platform": {"container": True}}},
    "WSL with Windows' driver": {
        "on": "managed-gpu",
        "machine": {"platform": {"wsl": True}, "nvidia": {"libcuda": "/usr/lib/wsl/lib/libcuda.so.1"}},
        "nodes": {"present": ["/dev/dxg"]},
    },
    "another vendor's GPU and `auto`": {
        "on": "managed",
        "device_asked": "auto",
        "machine": {"other_gpus": [{"vendor": "amd", "name": "RX 7600 XT", "kind": "discrete"}]},
        "plan": {"code": "vendor-not-nvidia", "reason": "RX 7600 XT is not an NVIDIA GPU"},
    },
    "no GPU and `auto`": {
        "on": "managed",
        "device_asked": "auto",
        "plan": {"code": "no-nvidia-gpu", "reason": "no NVIDIA GPU and no NVIDIA driver were found"},
    },
    "an NVIDIA card without a driver, and the CPU by choice": {
        "on": "managed",
        "machine": {"nvidia": {"status": "driver-missing", "gpus": []}},
    },
    "an arm64 processor": {"on": "managed", "machine": {"platform": {"arch": "aarch64"}, "cpu": {"flags": ["asimd"]}}},
    "Windows, where the processor does not tell": {
        "on": "managed",
        "machine": {"platform": {"os": "windows"}, "cpu": {"flags": None}},
        "nodes": {"present": []},
    },
    "memory declared as it is": {"on": "managed-gpu", "declared_gb": 24},
    "the generation before, kept for a rollback": {"on": "managed", "unused": {"generations": 130000000}},
    "a read-only environment with what is planned": {
        "on": "environment",
        "runtimes": {"write_error": "/x cannot be written (read-only file system)"},
    },
    "a damaged driver's check from before, and the CPU by choice": {
        "on": "managed",
        "proof": {"result": "failed", "kind": "conv-failed", "on_gpu": True},
    },
}


@pytest.mark.parametrize("state", HEALTHY.values(), ids=HEALTHY)
def test_no_alarm(state: dict[str, Any]) -> None:
    findings = run(CHECKS, facts_from_json(state))
    assert [found for found in findings if found.status in {"warning", "error"}] == []


@pytest.mark.parametrize("name", BASES)
def test_a_base_is_healthy_in_every_check(name: str) -> None:
    told = counts(run(CHECKS, BASES[name]))
    assert (told.error, told.warning) == (0, 0)
    assert told.skipped <= 2
