"""What the reason codes of plans mean, for `doctor --explain`; docs/reason-codes.md tells more about each.

A code that findings have too is explained with those.
"""

from __future__ import annotations

from imprint.doctor.explanation import Explanation

_DRIVER_HINT = "follow the plan's hint; without one no newer driver would help"

PLAN_CODES: dict[str, Explanation] = {
    code: Explanation("", means, fix)
    for code, means, fix in (
        ("gpu-native", "the chosen build has machine code for this GPU, which runs at full speed from the start", None),
        ("gpu-jit", "the driver compiles the build's code for this GPU first, so that the first run is slow", None),
        ("gpu-portable", "no CUDA build fits, and a GPU of any vendor is used through WebGPU", None),
        (
            "device-cpu",
            "model.device is cpu, so no GPU was looked for",
            "`imprint config set model.device auto` uses a GPU where there is one",
        ),
        ("os-no-gpu-build", "there is no CUDA build for this operating system", None),
        (
            "arch-no-gpu-build",
            "there is no CUDA build for this processor architecture, which is the interpreter's",
            "use an x86_64 Python where the machine can run one",
        ),
        (
            "python-no-gpu-wheel",
            "the CUDA builds have no wheel for this Python",
            "use the standard interpreter of Python 3.11 to 3.14",
        ),
        ("jetson-vendor-build", "the GPU of a Jetson needs NVIDIA's own build, which is on no package index", None),
        ("no-nvidia-gpu", "there is no NVIDIA hardware and no driver, so nothing for a CUDA build to run on", None),
        ("vendor-not-nvidia", "the GPU here is not NVIDIA's, and CUDA builds run on those alone", None),
        (
            "driver-mismatch",
            "the driver was updated and the machine not restarted since; an installed GPU build stays",
            "restart the machine",
        ),
        (
            "driver-unreadable",
            "the driver gave no usable answer, which is not the same as no GPU; an installed GPU build stays",
            "run `nvidia-smi`; restart the machine if that fails too",
        ),
        (
            "compat-unsupported",
            "a libcuda newer than the kernel's driver is loaded, which only data-centre GPUs allow",
            "restart after a driver update; in a container take the `compat` folder out of the library path",
        ),
        (
            "container-no-gpu",
            "the container was started without a GPU",
            "start it with one, for example `docker run --gpus all …`",
        ),
        (
            "wsl-linux-driver",
            "a Linux driver inside WSL hides the one that Windows provides",
            "remove the NVIDIA driver packages inside WSL",
        ),
        (
            "visible-devices-empty",
            "CUDA_VISIBLE_DEVICES hides every GPU from programs started here",
            "unset it, or name a GPU in it",
        ),
        (
            "visible-devices-invalid",
            "CUDA_VISIBLE_DEVICES names no GPU that is here",
            "unset it, or name a GPU that `imprint devices` shows",
        ),
        (
            "gpu-not-found",
            "model.gpu_device names no GPU that a program here can see; no other is taken instead",
            "name one that `imprint devices` shows; a UUID never changes its meaning",
        ),
        ("gpu-list-unsupported", "embeddings run on one GPU, not on a list", "name one GPU, or `auto`"),
        ("compute-capability-unsupported", "no build that could start has code for this GPU", _DRIVER_HINT),
        ("ptx-needs-newer-driver", "the driver is older than the code it would have to compile", _DRIVER_HINT),
        ("not-reached", "this build was not tried, because an earlier result decided", None),
        ("os-no-wheel", "ONNX Runtime has no wheel for this system, or none for so old a version of it", None),
        (
            "arch-no-wheel",
            "ONNX Runtime has no wheel for this architecture, which is the interpreter's",
            "use an interpreter for an architecture that the plan's hint names",
        ),
        ("libc-musl", "the wheels are made for glibc and this system has musl", "use a system or image with glibc"),
        ("libc-too-old", "this glibc is older than the wheels need", "use a newer distribution"),
        ("python-no-wheel", "there is no wheel for this Python", "use the Python that the plan's hint names"),
        (
            "python-abi-no-wheel",
            "there is no wheel for this variant of Python",
            "use the standard interpreter of the same version",
        ),
        (
            "smaller-gpu",
            "a larger GPU was not chosen because it would run worse",
            "`--gpu-device` or model.gpu_device chooses it",
        ),
        ("installed-build-kept", "nothing is removed until the driver can be read again", None),
    )
}
"""Every code of a plan that no finding has."""
