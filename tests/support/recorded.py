"""Facts of doctor from plain JSON: a healthy base, and over it what a state is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imprint import resources
from imprint.diagnosis.facts import (
    Damage,
    Disk,
    Embedded,
    Facts,
    HomeFacts,
    Interpreter,
    Library,
    Loaded,
    Nodes,
    OwnImport,
    PlanFacts,
    Proof,
    RuntimeFacts,
    Runtimes,
    SettingsFacts,
    SystemFacts,
    TargetFacts,
    Unused,
)
from imprint.errors import ImprintError, InvalidValueError, StateError, StateNewerError
from imprint.planning.builds import Wheel, parse_builds
from imprint.planning.model import Cpu, Device, Gpu, Installed, Libc, Machine, Nvidia, Plan, Platform, Python
from imprint.planning.wire import machine_from_json, plan_from_json
from imprint.state.findings import Finding
from imprint.values import fields_of, replace

_GROUPS: dict[str, type[Any]] = {
    "settings": SettingsFacts,
    "home": HomeFacts,
    "system": SystemFacts,
    "target": TargetFacts,
    "runtime": RuntimeFacts,
    "planned": PlanFacts,
}
_PLACES = {
    **{name: (group, name) for group, kind in _GROUPS.items() for name in fields_of(kind)},
    "home": ("home", "path"),
    "home_error": ("home", "error"),
    "installed_build": ("runtime", "build"),
}
"""In which group a fact is, by the name that the cases give it."""

FACTS = tuple(_PLACES)
"""The names of all facts."""


def changed(facts: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - each fact has a type of its own
    """Return facts of which some are others, each by its name alone."""
    for name, value in changes.items():
        if name == "failures":
            facts = replace(facts, failures=value)
        else:
            group, field = _PLACES[name]
            facts = replace(facts, **{group: replace(getattr(facts, group), **{field: value})})
    return facts


def fact(facts: Facts, name: str) -> Any:  # noqa: ANN401 - as above
    """Return one of the facts, by its name alone."""
    group, field = _PLACES[name]
    return getattr(getattr(facts, group), field)


CUDA_LIBRARIES = ("libcublasLt.so.13", "libcublas.so.13", "libcudart.so.13", "libcurand.so.10")
GPU = Gpu(0, "GPU-11111111-2222-3333-4444-555555555555", "NVIDIA L4", "8.9", 23034, 22000, False, False, "0000:01:00.0")
FOR_EMBEDDING = {"tokenizers": "0.23.1", "orjson": "3.11.9"}
"""What embedding needs besides: every recorded environment has it, unless it says null."""
CPU_MACHINE = Machine(
    platform=Platform("linux", "x86_64", Libc("glibc", "2.36"), "12", False, False, False),
    python=Python("3.12.4", "cp312"),
    cpu=Cpu("a processor", 8, 32000, 21000, ("avx", "avx2", "avx512f")),
    nvidia=Nvidia("none", gpus=()),
    other_gpus=(),
)
GPU_MACHINE = replace(
    CPU_MACHINE,
    nvidia=Nvidia("ok", "580.95.05", "580.95.05", "13.0", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", None, (GPU,)),
)
CPU_PLAN = Plan("cpu", "cpu.txt", "1.31.1", None, "device-cpu", "model.device is cpu")
GPU_PLAN = Plan(
    "cuda13",
    "cuda13.txt",
    "1.31.1",
    Device(0, GPU.uuid, GPU.name),
    "gpu-native",
    "NVIDIA L4 has native code in the CUDA 13 build",
    installed=Installed("cuda13", "1.31.1"),
)
MANAGED = changed(
    Facts(HomeFacts("/home/x/imprint")),
    device_asked="cpu",
    provisioned=True,
    interpreter=Interpreter("/home/x/imprint/runtimes/1/bin/python", present=True, version="3.12.4", made_for="3.12"),
    runtimes=Runtimes(
        ("onnxruntime 1.31.1",),
        12,
        packages="/home/x/imprint/runtimes/1/lib/python3.12/site-packages",
        versions={"onnxruntime": "1.31.1", "numpy": "2.4.6", **FOR_EMBEDDING},
        size=133_000_000,
    ),
    loaded=Loaded("onnxruntime", "1.31.1", None, "/x/onnxruntime/__init__.py", ("CPUExecutionProvider",), sends=True),
    machine=CPU_MACHINE,
    nodes=Nodes(),
    own_import=OwnImport(),
    installed_build="cpu",
    plan=CPU_PLAN,
    proof=Proof("ok", "2026-11-28T10:00:00Z"),
    model="all-minilm-l6-v2",
    embedded=Embedded("CPUExecutionProvider", 384, 0.4),
    disk=Disk(50_000_000_000, None, "/home/x"),
    unused=Unused(),
    copies=False,
)
GPU_LOADED = Loaded(
    "onnxruntime-gpu",
    "1.31.1",
    "13.0",
    "/x/onnxruntime/__init__.py",
    ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"),
    session=("CUDAExecutionProvider", "CPUExecutionProvider"),
    libraries=tuple(Library(name, "wheel", f"/x/nvidia/cu13/lib/{name}", True, True) for name in CUDA_LIBRARIES),
    sends=True,
)
GPU_VERSIONS = {
    **FOR_EMBEDDING,
    "onnxruntime-gpu": "1.31.1",
    "numpy": "2.4.6",
    "nvidia-cublas": "13.0.2.14",
    "nvidia-cuda-nvrtc": "13.0.88",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-curand": "10.4.0.35",
    "nvidia-cudnn-cu13": "9.16.0.29",
}
MANAGED_GPU = changed(
    MANAGED,
    device_asked="gpu",
    device_set=True,
    runtimes=replace(
        MANAGED.target.installed,
        builds=("onnxruntime-gpu 1.31.1",),
        versions=GPU_VERSIONS,
        size=2_155_000_000,
    ),
    loaded=GPU_LOADED,
    machine=GPU_MACHINE,
    nodes=Nodes(("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")),
    installed_build="cuda13",
    plan=GPU_PLAN,
    proved=True,
    proof=Proof("ok", "2026-11-28T10:00:00Z", on_gpu=True),
    embedded=Embedded("CUDAExecutionProvider", 384, 2.1),
)
_ELSEWHERE: dict[str, Any] = {
    "venv": "/srv/app/.venv",
    "kinds": ("virtual",),
    "ours": False,
    "interpreter": Interpreter("/srv/app/.venv/bin/python", present=True, version="3.12.4", made_for="3.12"),
    "embedded": None,
    "proof": None,
}
ENVIRONMENT = changed(MANAGED, **_ELSEWHERE)
GPU_ENVIRONMENT = changed(MANAGED_GPU, **_ELSEWHERE)
BASES = {
    "managed": MANAGED,
    "managed-gpu": MANAGED_GPU,
    "environment": ENVIRONMENT,
    "gpu-environment": GPU_ENVIRONMENT,
}
"""Healthy facts by name: our own target or somebody's environment, with the build for the CPU or for a GPU."""

_ERRORS = {"state": StateError, "newer": StateNewerError, "invalid": InvalidValueError}
_RECORDS: dict[str, type[Any]] = {
    "interpreter": Interpreter,
    "runtimes": Runtimes,
    "loaded": Loaded,
    "nodes": Nodes,
    "own_import": OwnImport,
    "proof": Proof,
    "embedded": Embedded,
    "disk": Disk,
    "unused": Unused,
}
_LISTS: dict[str, type[Any]] = {"damages": Damage, "libraries": Library, "asides": Finding}


def facts_from_json(obj: Mapping[str, Any]) -> Facts:
    """Return the facts that a document describes: `on` names the base, every other key is a fact.

    A fact that is an object changes those of its fields that it names; null makes a fact unknown.
    """
    base = BASES[obj["on"]]
    return changed(base, **{name: _fact(base, name, value) for name, value in obj.items() if name != "on"})


def _fact(base: Facts, name: str, value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    if name == "failures":
        return {fact: _error(given) for fact, given in value.items()}
    if name == "wheel":
        return wheel_of(**value)
    if value is None:
        return None
    if name in {"machine", "plan", "waiting"}:
        known = fact(base, "machine") or Machine() if name == "machine" else fact(base, "plan") or CPU_PLAN
        before = known.to_json()
        return (machine_from_json if name == "machine" else plan_from_json)(_over(before, value))
    if name in _RECORDS:
        there = fact(base, name)
        given = {field: _plain(field, item) for field, item in value.items()}
        if "versions" in given:
            all_of_them = {**FOR_EMBEDDING, **given["versions"]}
            given["versions"] = {package: version for package, version in all_of_them.items() if version is not None}
        return _RECORDS[name](**given) if there is None else replace(there, **given)
    return _plain(name, value)


def _plain(name: str, value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    if name in _LISTS and isinstance(value, list):
        names = fields_of(_LISTS[name])
        return tuple(
            _LISTS[name](**item) if isinstance(item, dict) else _LISTS[name](**dict(zip(names, item, strict=False)))
            for item in value
        )
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


def _over(before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(before)
    for key, value in change.items():
        inner = changed.get(key)
        changed[key] = _over(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return changed


def _error(given: Mapping[str, Any]) -> ImprintError:
    kind = _ERRORS.get(given.get("type", ""), ImprintError)
    return kind(given["message"], hint=given.get("hint"), code=given.get("code"))


def wheel_of(build: str, os: str = "linux", arch: str = "x86_64") -> Wheel:
    """Return the entry of the shipped table for a build on a platform."""
    table = parse_builds(json.loads(resources.data_path("builds.json").read_text("utf-8")), {}, "")
    found = table.find(build)
    assert found is not None
    return next(wheel for wheel in found.wheels if (wheel.os, wheel.arch) == (os, arch))
