"""Machines for the properties: mostly from pools of edge values, so that gates are met on both sides."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import Gpu, Installed, Libc, Machine, Nvidia, OtherGpu, Platform, Python, Request, Verdict
from imprint.values import replace
from imprint.words import NVIDIA_STATUSES
from planning.conftest import TABLE

CAPABILITIES = [
    *("3.5", "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0"),
    *("10.0", "10.3", "11.0", "12.0", "12.1", "13.0"),
]
DRIVERS = [
    *("390.157", "470.256.02", "525.53", "525.60.13", "527.41", "528.24", "528.33", "530.41.03", "535.183.01"),
    *("545.23.08", "550.54.14", "560.35.03", "565.57.01", "570.133.07", "575.57.08", "579.99", "580.65.06", "581.80"),
    *("591.44", "595.45", "610.10", "999"),
]
CUDAS = ["11.4", "11.8", "12.0", "12.1", "12.2", "12.4", "12.7", "12.8", "12.9", "13.0", "13.1", "14.0"]
PYTHONS = ["3.9.19", "3.10.14", "3.11.9", "3.12.4", "3.13.2", "3.14.0", "3.15.0a1"]
GARBAGE = st.text(string.printable, max_size=6) | st.sampled_from(
    ["9" * 5000, "٣.٤", "cp312", "-1", "1.2.3.4.5.6.7.8.9"]
)


def maybe(*values: str | int | bool) -> st.SearchStrategy[object]:
    """One of the values, or unknown."""
    return st.sampled_from([None, *values])


gpu_facts = st.builds(
    Gpu,
    uuid=maybe("GPU-aaaa", "GPU-bbbb", "MIG-cccc"),
    name=maybe("one card", "another card"),
    compute_capability=st.sampled_from([*CAPABILITIES, None]),
    memory_mib=maybe(2048, 12288, 24576, 97887),
    integrated=maybe(False, True),
    mig=maybe(False, True),
)


@st.composite
def gpu_lists(draw: st.DrawFn, least: int = 0) -> tuple[Gpu, ...]:
    """Up to four GPUs, each with an index of its own."""
    facts = draw(st.lists(gpu_facts, min_size=least, max_size=4))
    indices = draw(st.permutations(range(len(facts) + 1)))
    return tuple(replace(gpu, index=index) for gpu, index in zip(facts, indices, strict=False))


platforms = st.builds(
    Platform,
    os=st.sampled_from(["linux", "linux", "windows", "windows", "macos", "freebsd", None]),
    arch=st.sampled_from(["x86_64", "x86_64", "x86_64", "aarch64", "aarch64", "riscv64", None]),
    libc=st.none()
    | st.builds(
        Libc,
        name=st.sampled_from(["glibc", "glibc", "glibc", "musl", "bionic", None]),
        version=st.sampled_from(["2.17", "2.27", "2.28", "2.33", "2.34", "2.39", None]),
    ),
    os_version=maybe("12.7", "13.0", "13.6", "14.0", "15.1"),
    wsl=maybe(False, True),
    container=maybe(False, True),
    jetson=st.sampled_from([None, False, False, False, True]),
)
pythons = st.builds(
    Python,
    version=st.sampled_from([*PYTHONS, None]),
    abi=st.sampled_from([None, None, None, "cp310", "cp312", "cp313t", "cp314t", "pp311"]),
)
usual_nvidia = st.builds(
    Nvidia,
    status=st.just("ok"),
    driver=st.sampled_from([*DRIVERS, None]),
    cuda=st.none() | st.sampled_from(CUDAS),
    gpus=gpu_lists(1),
)
any_nvidia = st.builds(
    Nvidia,
    status=st.sampled_from([*NVIDIA_STATUSES, None]),
    driver=st.sampled_from([*DRIVERS, None]),
    kernel_driver=maybe("550.90.07"),
    cuda=st.none() | st.sampled_from(CUDAS),
    libcuda=maybe("/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
    error=maybe("cuInit 999"),
    gpus=st.none() | gpu_lists(),
)
other_gpus = st.none() | st.lists(
    st.builds(
        OtherGpu,
        vendor=maybe("amd", "intel", "nvidia", "mesa"),
        name=maybe("a GPU"),
        kind=maybe("discrete", "integrated", "software"),
        api=maybe("vulkan", "d3d12", "metal", "opengl"),
        memory_mib=maybe(512, 8192),
    ),
    max_size=2,
).map(tuple)
environments = st.dictionaries(
    st.sampled_from(["CUDA_VISIBLE_DEVICES", "IMPRINT_ALLOW_SOFTWARE_GPU"]),
    st.sampled_from(["", "-1", "NoDevFiles", "0", "1", "0,0"]),
    max_size=2,
)
machines = st.builds(
    Machine,
    platform=platforms,
    python=pythons,
    nvidia=usual_nvidia | any_nvidia,
    other_gpus=other_gpus,
    environment=environments,
)
gpu_machines = st.builds(
    Machine,
    platform=st.builds(
        Platform,
        os=st.sampled_from(["linux", "windows"]),
        arch=st.sampled_from(["x86_64", "x86_64", "aarch64"]),
        libc=st.none() | st.builds(Libc, name=st.just("glibc"), version=st.sampled_from(["2.28", "2.33", "2.39"])),
        wsl=maybe(False, True),
    ),
    python=st.builds(Python, version=st.sampled_from(["3.10.14", "3.11.9", "3.12.4", "3.14.0"])),
    nvidia=usual_nvidia,
)
requests = st.builds(
    Request,
    device=st.sampled_from(["cpu", "gpu", "auto"]),
    gpu_device=st.sampled_from(
        ["auto", "auto", "auto", "0", "1", "2", "GPU-aaaa", "gpu-BBBB", "MIG-cccc", "0,1", "x", ""]
    ),
    portable_gpu=st.booleans(),
    portable_is_faster=maybe(False, True),
)
gpu_requests = requests.map(
    lambda request: replace(request, device="gpu" if request.device == "cpu" else request.device)
)
installed_builds = st.none() | st.builds(
    Installed,
    build=st.sampled_from(["cpu", "cuda13", "cuda13-1.28", "cuda12", "cuda12-py310", "webgpu", "something"]),
    version=maybe("1.31.1", "1.28.0", "1.26.0", "1.23.2", "1.20.0"),
)


@st.composite
def verdicts_for(draw: st.DrawFn, machine: Machine) -> tuple[Verdict, ...]:
    """Verdicts of which many hold on this machine and some differ in one field."""
    gpus = machine.nvidia.gpus or (Gpu(),)
    found = []
    for _ in range(draw(st.integers(0, 4))):
        build = draw(st.sampled_from([build.name for build in TABLE.cuda]))
        fingerprint = fingerprint_of(build, draw(st.sampled_from(gpus)), machine, TABLE)
        if draw(st.integers(0, 3)) == 0:
            changed = draw(st.sampled_from(["driver", "gpu_uuid", "python", "lock", "check"]))
            fingerprint = replace(fingerprint, **{changed: draw(maybe("other"))})
        result = draw(st.sampled_from(["failed", "failed", "failed", "ok"]))
        kind = draw(maybe("no-kernel", "conv-failed", "crashed"))
        found.append(Verdict(build, result, kind, None, fingerprint))  # type: ignore[arg-type] # drawn as object
    return tuple(found)


@st.composite
def situations(
    draw: st.DrawFn, of: st.SearchStrategy[Machine] = machines
) -> tuple[Request, Machine, tuple[Verdict, ...], Installed | None]:
    """Everything a plan is made from."""
    machine = draw(of)
    return draw(requests), machine, draw(verdicts_for(machine)), draw(installed_builds)


def texts_of(cls: type, names: tuple[str, ...]) -> st.SearchStrategy[object]:
    """Values of a class whose text fields hold anything at all."""
    return st.builds(cls, **{name: st.none() | GARBAGE for name in names})


odd_machines = st.builds(
    Machine,
    platform=texts_of(Platform, ("os", "arch", "os_version")) | platforms,
    python=texts_of(Python, ("version", "abi")),
    nvidia=st.builds(
        Nvidia,
        status=st.just("ok") | GARBAGE,
        driver=st.none() | GARBAGE,
        cuda=st.none() | GARBAGE,
        libcuda=st.none() | GARBAGE,
        error=st.none() | GARBAGE,
        gpus=st.lists(
            st.builds(Gpu, uuid=st.none() | GARBAGE, name=st.none() | GARBAGE, compute_capability=st.none() | GARBAGE)
        ).map(tuple),
    ),
    environment=st.dictionaries(GARBAGE, GARBAGE, max_size=2),
)
