"""Builds of ONNX Runtime that vendors publish for their own hardware, and the provider that goes with each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from imprint.runtime.distributions.inventory import is_runtime

OURS = frozenset({"onnxruntime", "onnxruntime-gpu"})
"""The distributions of the builds in our table."""

_PROVIDERS = {
    "onnxruntime-openvino": "OpenVINOExecutionProvider",
    "onnxruntime-directml": "DmlExecutionProvider",
    "onnxruntime-rocm": "ROCMExecutionProvider",
    "onnxruntime-migraphx": "MIGraphXExecutionProvider",
    "onnxruntime-qnn": "QNNExecutionProvider",
    "onnxruntime-cann": "CANNExecutionProvider",
    "onnxruntime-vitisai": "VitisAIExecutionProvider",
    "onnxruntime-webgpu": "WebGpuExecutionProvider",
}
"""The provider that only this distribution has (their metadata on the package index, read 2026-11-30)."""


class Leaving(Protocol):
    """A change of one distribution: its name, and the version that is there afterwards, None for none."""

    @property
    def name(self) -> str:
        """The distribution's name."""

    @property
    def to(self) -> str | None:
        """The version afterwards."""


def leaving(changes: Iterable[Leaving]) -> list[str]:
    """Return the vendors' builds that changes of an environment take away."""
    return sorted(
        change.name for change in changes if change.to is None and is_runtime(change.name) and change.name not in OURS
    )


def replaced_sentence(names: Iterable[str]) -> str:
    """Say what `setup` would take away with builds that are not ours."""
    return f"`imprint setup` would replace {with_providers(names)}"


def with_providers(names: Iterable[str]) -> str:
    """Return vendors' builds, each with the provider that only it has."""
    return " and ".join(f"{name} with its {_PROVIDERS[name]}" if name in _PROVIDERS else name for name in names)
