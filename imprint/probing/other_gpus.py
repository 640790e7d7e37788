"""Reads the GPUs that are not NVIDIA's on Linux, and what serves them: the Vulkan loader and AMD's ROCm.

Only files are read, which wakes no sleeping GPU. What only paints a console or a virtual screen (virtio, QXL, a
server's management chip) is no GPU here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from imprint import envvars
from imprint.planning.model import OtherGpu, Rocm, Vulkan
from imprint.probing.host import Host
from imprint.probing.libraries import find_library
from imprint.words import GpuKind

_DRM = "/sys/class/drm"

_VENDORS = {"0x1002": "amd", "0x8086": "intel", "0x1d17": "zhaoxin", "0x1ed5": "moorethreads"}
"""PCI vendors of GPUs other than NVIDIA's (pci.ids, 2026-11)."""

_DISPLAY_CLASS = "0x03"

_SOC_DRIVERS = {
    "panfrost": "arm",
    "panthor": "arm",
    "lima": "arm",
    "msm": "qualcomm",
    "v3d": "broadcom",
    "asahi": "apple",
    "etnaviv": "vivante",
    "powervr": "imagination",
}
"""Kernel drivers of GPUs that are part of a chip and on no PCI bus -> who made the GPU."""

_PCI_NAMES = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
_PCI_NAMES_LIMIT = 8 * 1024 * 1024

_ICD_FOLDERS = ("/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d")
_SOFTWARE_ICDS = re.compile(r"lvp_icd|llvmpipe|swiftshader", re.IGNORECASE)

_MIB = 1024 * 1024


def survey_vulkan(host: Host, arch: str | None) -> Vulkan:
    """Return whether the Vulkan loader is on the library path: `ok` or `missing`. It is not loaded."""
    loader = find_library(host, "libvulkan.so.1", arch)
    return Vulkan(status="ok", loader=loader) if loader else Vulkan(status="missing")


def survey_rocm(host: Host) -> Rocm:
    """Return whether one of AMD's management tools is there, and whether this process may use the compute device."""
    folders = [*host.environ.get("PATH", "").split(":"), "/opt/rocm/bin"]
    tools = (f"{folder}/{tool}" for folder in folders if folder for tool in ("amd-smi", "rocm-smi"))
    return Rocm(smi=any(host.exists(tool) for tool in tools), kfd_access=host.can_open("/dev/kfd"))


def survey_other_gpus(host: Host, vulkan: Vulkan) -> tuple[OtherGpu, ...]:
    """Return the GPUs of /sys/class/drm that are not NVIDIA's.

    `api` is vulkan where its loader and a render node were found: a container may show the host's cards and be given
    none of them. Software renderers are added, kind `software`, only when IMPRINT_ALLOW_SOFTWARE_GPU is 1.
    """
    api = "vulkan" if vulkan.status == "ok" else None
    nodes = [name for name in host.list_dir("/dev/dri") or () if name.startswith("renderD")]
    cards = [name for name in host.list_dir(_DRM) or () if re.fullmatch(r"card\d+", name)]
    found = [gpu for name in cards if (gpu := _card(host, f"{_DRM}/{name}", api if nodes else None)) is not None]
    if host.environ.get(envvars.ALLOW_SOFTWARE_GPU) == "1":
        found.extend(OtherGpu("software", name, "software", api) for name in _software_renderers(host))
    return tuple(found)


def parse_pci_name(text: str, vendor: str, device: str) -> str | None:
    """Return the device's name from a pci.ids file; `vendor` and `device` are four hexadecimal digits."""
    block = re.search(rf"^{vendor}  .*\n((?:[\t#].*\n|\n)*)", text, re.MULTILINE | re.IGNORECASE)
    line = re.search(rf"^\t{device}  (.+)$", block[1], re.MULTILINE | re.IGNORECASE) if block else None
    return line[1].strip() if line else None


def _card(host: Host, card: str, api: str | None) -> OtherGpu | None:
    def read(name: str) -> str:
        return (host.read_text(f"{card}/{name}", 256) or "").strip()

    driver = (host.resolve(f"{card}/device/driver") or "").rpartition("/")[2]
    vendor_id = read("device/vendor").lower()
    if not vendor_id:
        vendor = _SOC_DRIVERS.get(driver)
        return OtherGpu(vendor, f"{vendor} GPU ({driver})", "integrated", api) if vendor else None
    vendor = _VENDORS.get(vendor_id)
    if vendor is None or not read("device/class").startswith(_DISPLAY_CLASS) or driver == "vfio-pci":
        return None
    device_id = read("device/device").lower()
    name = read("device/product_name") or _pci_name(host, vendor_id[2:], device_id[2:])
    memory = read("device/mem_info_vram_total") or read("lmem_total_bytes") or read("device/lmem_total_bytes")
    kind = _kind(host, card, vendor, memory)
    return OtherGpu(
        vendor,
        name or f"{vendor} GPU {vendor_id[2:]}:{device_id[2:]}",
        kind,
        api,
        int(memory) // _MIB if memory.isdigit() and kind == "discrete" else None,
    )


def _kind(host: Host, card: str, vendor: str, memory: str) -> GpuKind | None:
    """Return discrete or integrated, None where nothing tells."""
    if vendor == "amd":
        # Only chips with a processor have this voltage rail (kernel, amdgpu_pm.c); a card names its memory's maker.
        monitors = host.list_dir(f"{card}/device/hwmon") or ()
        if any(host.exists(f"{card}/device/hwmon/{monitor}/in1_label") for monitor in monitors):
            return "integrated"
        return "discrete" if monitors and memory else None
    address = (host.resolve(f"{card}/device") or "").rpartition("/")[2]
    if vendor == "intel" and re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", address):
        # Intel's integrated GPU is always function 2 of the root bus; cards sit behind a bridge.
        return "integrated" if address.endswith(":00:02.0") else "discrete"
    return None


def _pci_name(host: Host, vendor: str, device: str) -> str | None:
    for path in _PCI_NAMES:
        text = host.read_text(path, _PCI_NAMES_LIMIT)
        if text is not None:
            return parse_pci_name(text, vendor, device)
    return None


def _software_renderers(host: Host) -> Iterator[str]:
    """Yield the names of the software Vulkan drivers that the loader would find."""
    named = host.environ.get("VK_DRIVER_FILES") or host.environ.get("VK_ICD_FILENAMES")
    manifests = (
        [path for path in named.split(":") if path]
        if named
        else [f"{folder}/{name}" for folder in _ICD_FOLDERS for name in host.list_dir(folder) or ()]
    )
    for path in manifests:
        if _SOFTWARE_ICDS.search(path.rpartition("/")[2]) and host.exists(path):
            yield ("SwiftShader" if "swiftshader" in path else "llvmpipe") + " (software renderer)"
