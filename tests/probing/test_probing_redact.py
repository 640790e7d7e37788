"""A redacted machine identifies nobody and still gives the same plan."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from imprint.planning.model import Gpu, Machine, Nvidia, Platform, Vulkan
from imprint.probing.redact import redact

FIRST, SECOND = "GPU-8a1b2c3d-0000-1111-2222-333344445555", "MIG-11112222-3333-4444-5555-666677778888"

MACHINE = Machine(
    platform=Platform(os="linux", arch="x86_64"),
    nvidia=Nvidia(
        status="ok",
        driver="570.133.07",
        libcuda="/home/ada/drivers/libcuda.so.570.133.07",
        error="libcuda cannot be loaded: /home/Ada Lovelace/lib/libcuda.so.1: file too short",
        gpus=(Gpu(index=0, uuid=FIRST, name="NVIDIA X"), Gpu(index=1, uuid=SECOND, mig=True), Gpu(index=2)),
    ),
    vulkan=Vulkan(status="ok", loader="/opt/ada/libvulkan.so.1"),
    environment={
        "CUDA_VISIBLE_DEVICES": f"{SECOND},gpu-8a1b2c3d",
        "NVIDIA_VISIBLE_DEVICES": "GPU-ffffffff-9999-9999-9999-999999999999",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    },
)


def test_nothing_identifying_is_left() -> None:
    """No UUID, no folder, no user name in any field."""
    text = json.dumps(asdict(redact(MACHINE)), ensure_ascii=False).lower()
    for secret in ("8a1b2c3d", "11112222", "ffffffff", "ada", "lovelace", "/home", "/opt"):
        assert secret not in text


def test_references_still_fit() -> None:
    """A GPU that the environment names by UUID, or by its beginning, is the same GPU afterwards."""
    redacted = redact(MACHINE)
    gpus = redacted.nvidia.gpus or ()
    assert [gpu.uuid for gpu in gpus] == [
        "GPU-00000000-0000-0000-0000-000000000000",
        "MIG-00000000-0000-0000-0000-000000000001",
        None,
    ]
    assert redacted.environment["CUDA_VISIBLE_DEVICES"] == f"{gpus[1].uuid},{gpus[0].uuid}"
    assert redacted.environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_file_names_and_wsls_folder_stay() -> None:
    """What planning or a reader of the report needs is kept: versions in names, and whether libcuda is WSL's."""
    assert redact(MACHINE).nvidia.libcuda == "…/libcuda.so.570.133.07"
    wsl = replace(MACHINE, nvidia=replace(MACHINE.nvidia, libcuda="/usr/lib/wsl/lib/libcuda.so.1"))
    assert redact(wsl).nvidia.libcuda == "/usr/lib/wsl/lib/libcuda.so.1"


def test_redacting_twice_changes_nothing_more() -> None:
    """What is redacted stays as it is."""
    assert redact(redact(MACHINE)) == redact(MACHINE)
    assert redact(Machine()) == Machine()
