"""Codes about the way to a GPU: CUDA libraries, driver, device, and what embeddings run on in the end."""

from __future__ import annotations

from imprint.doctor.explanation import Explanation

LIBRARIES: dict[str, Explanation] = {
    "runtime-libs-missing": Explanation(
        "`CUDAExecutionProvider` is listed as available, nothing errors, and embeddings are slow; the log says "
        "`Failed to load library … cannot open shared object file` (on Windows error 126)",
        "a CUDA library that this build needs is not there; the base package of ONNX Runtime brings none of them",
        "install the packages that hold the library; `imprint setup` does so for its own runtime",
    ),
    "libs-present-not-loaded": Explanation(
        "the CUDA libraries are installed in the environment and still not found; it works after `import torch`",
        "NVIDIA's packages put libraries where the system's loader does not look, and nothing loaded them before",
        "call `onnxruntime.preload_dlls()` before the first session (Imprint's worker does), or name their folders in "
        "`LD_LIBRARY_PATH`; installing them again changes nothing",
    ),
    "cuda-major-mismatch": Explanation(
        "the log asks for a library with another number than the ones installed (`libcublasLt.so.12` beside `.13`)",
        "the build and the CUDA libraries are of different CUDA versions; a toolkit on the host does not help",
        "install the libraries of the build's CUDA version, or the build for the libraries: `imprint setup` keeps "
        "the two together",
    ),
    "libs-mixed-sources": Explanation(
        "`CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`, error 127, or crashes that come and go",
        "some CUDA libraries come from the environment and others of the same set from the system",
        "use one source: install what is missing into the environment, and keep other folders out of `LD_LIBRARY_PATH`",
    ),
    "cudnn-clash": Explanation(
        "cuDNN reports that its parts have different versions",
        "two cuDNN packages share one folder, so that files of both are mixed",
        "remove both, then install only the one for the build's CUDA version",
    ),
    "cudnn-too-new": Explanation(
        "cuDNN fails to execute on a card of the Pascal, Volta or Maxwell generation after an update",
        "cuDNN 9.11 and later have no code for GPUs below compute capability 7.5",
        "install cuDNN 9.10 (`nvidia-cudnn-cu12==9.10.*`)",
    ),
    "libs-untested": Explanation(
        "error 126 or 127 for a library that exists, after the NVIDIA packages were updated",
        "the CUDA libraries have other versions than this build was tried with, and the GPU cannot be used",
        "install the versions that the finding names",
    ),
    "placeholder-package": Explanation(
        "an NVIDIA package is installed and the library is missing",
        "a package of that name is an empty placeholder: for CUDA 13 the names have no suffix, but for cuDNN",
        "install the package without the suffix",
    ),
}

DRIVER: dict[str, Explanation] = {
    "driver-missing": Explanation(
        "an NVIDIA card is in the machine and nothing sees it",
        "there is NVIDIA hardware and no NVIDIA driver, so no CUDA build can use it",
        "install NVIDIA's driver; `imprint devices` says which versions run which build",
    ),
    "driver-too-old": Explanation(
        "`CUDA driver version is insufficient`, CUDA failure 35, or a GPU that is not used after an update",
        "the driver does not support the CUDA version of any build for this GPU",
        "install the driver that the finding names; where it names none, no driver would help",
    ),
    "driver-mismatch-reboot": Explanation(
        "`Driver/library version mismatch` (NVML 18, CUDA 803) since the driver was updated",
        "the driver's kernel module is still the one from before the update; the installed build is right",
        "restart the machine; nothing has to be installed or removed",
    ),
    "driver-unreadable": Explanation(
        "`nvidia-smi` hangs, or CUDA answers with an error that says little",
        "the driver is there and gave no usable answer, so nothing is known about the GPU",
        "restart the machine, or install the driver again; then `imprint devices`",
    ),
    "forward-compat-on-geforce": Explanation(
        "CUDA error 804, `forward compatibility was attempted on non supported HW`",
        "a libcuda newer than the kernel's driver is loaded, as container images bring one; only data-centre cards "
        "may use that",
        "install a newer driver on the host, or keep the image's `compat` folder out of `LD_LIBRARY_PATH` and "
        "`/etc/ld.so.conf.d`",
    ),
    "uvm-unavailable": Explanation(
        "`nvidia-smi` works and CUDA answers 999 (unknown error), often after suspend or in a container",
        "CUDA cannot use the driver's memory module, nvidia_uvm",
        "`sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm`; in a container pass `/dev/nvidia-uvm` in as well",
    ),
    "no-device": Explanation(
        "CUDA error 100, no CUDA-capable device",
        "the driver is there and shows no GPU to this process",
        "check that the GPU is switched on and not bound to a virtual machine; then `imprint devices`",
    ),
    "gpus-hidden": Explanation(
        "the GPU is used elsewhere and not from here; CUDA error 100 or 101",
        "CUDA_VISIBLE_DEVICES hides every GPU, or names one that is not here",
        "unset `CUDA_VISIBLE_DEVICES`, or give it an index or UUID that `imprint devices` shows",
    ),
    "container-no-gpu-runtime": Explanation(
        "the GPU works on the host and not in the container",
        "no GPU is passed into this container",
        "start this very container with a GPU: `docker run --gpus all …`, or in compose a `devices` reservation for "
        "this service; NVIDIA's container toolkit has to be on the host",
    ),
    "gpu-lost-in-container": Explanation(
        "the GPU worked in the container and is gone, `Failed to initialize NVML: Unknown Error`",
        "the device nodes are there and may not be used any more: the container lost its rights to them, as after a "
        "`systemctl daemon-reload` on the host",
        "restart the container",
    ),
    "wsl-linux-driver-installed": Explanation(
        "in WSL `nvidia-smi` lists the GPU and CUDA answers 100",
        "a Linux driver installed inside WSL hides the libcuda that Windows provides",
        "remove the driver's packages inside WSL (`sudo apt purge 'libnvidia-*' 'nvidia-*'`) and open a new shell; "
        "Windows' driver supplies all that is needed in /usr/lib/wsl/lib",
    ),
    "device-nodes-denied": Explanation(
        "everything installs, and no usable GPU is found; it works as root",
        "this user may not open the GPU's device nodes",
        "add yourself to the group that owns them (often `video` or `render`): `sudo usermod -aG render,video $USER`, "
        "then log in again",
    ),
}

DEVICE: dict[str, Explanation] = {
    "no-build": Explanation(
        "setup ends with a code such as `python-no-wheel` or `libc-musl`",
        "no build of ONNX Runtime exists for this system, processor or Python",
        "the finding names the nearest choice that exists",
    ),
    "gpu-unavailable": Explanation(
        "a GPU was asked for, and embeddings run on the CPU",
        "a GPU was asked for and cannot be used here, so the CPU is planned",
        "none is known; `imprint config set model.device cpu` if the CPU is what you want",
    ),
    "gpu-build-without-gpu": Explanation(
        "`onnxruntime-gpu` is installed, lists CUDA as available, and embeddings run on the CPU",
        "the build is for NVIDIA GPUs and there is none here; its list of providers describes the build, not the "
        "machine",
        "`imprint setup` installs the small CPU build; nothing is broken meanwhile",
    ),
    "provider-not-requested": Explanation(
        "everything is installed, the GPU idles and embeddings are slow",
        "the GPU works and nobody asks for it: it is a matter of configuration, not of installation",
        "`imprint config set model.device gpu`; in your own program pass "
        "`providers=['CUDAExecutionProvider', 'CPUExecutionProvider']`",
    ),
    "provider-failed": Explanation(
        "the session silently runs on the CPU, and no library is named as missing",
        "the GPU provider did not start, for the reason that is shown",
        "mend the reason that is shown, then `imprint setup --retry-gpu`",
    ),
    "no-kernel-for-gpu": Explanation(
        "the session is made on the GPU and every run fails: `no kernel image is available for execution`",
        "the installed build has no machine code for this GPU; making a session does not show that, running does",
        "`imprint setup` plans the build that has code for this GPU, or the CPU where none has",
    ),
    "gpu-run-failed": Explanation(
        "the session is made on the GPU and running it fails",
        "the GPU provider starts and does not compute",
        "mend the reason that is shown, then `imprint setup --retry-gpu`; "
        "`imprint config set model.device cpu` works meanwhile",
    ),
    "embedding-on-cpu": Explanation(
        "a GPU is planned and was proved, and embedding still runs on the CPU",
        "the worker asked for the GPU and ONNX Runtime gave it the CPU without an error",
        "`imprint check` says why",
    ),
    "not-proved": Explanation(
        "the GPU build is installed, and status says that embeddings run on the CPU",
        "no check of this build on this GPU has passed yet, and only a proved GPU is used",
        "`imprint check`",
    ),
    "check-stale": Explanation(
        "the GPU was used and is not any more, since the driver or the GPU changed",
        "the last check was made with another driver, GPU, Python or build, so it proves nothing about this one",
        "`imprint check`",
    ),
    "check-failed": Explanation(
        "setup said that the check failed and installed the CPU build",
        "the last check of this build failed, so it is not used",
        "mend the cause, then `imprint setup --retry-gpu`",
    ),
}
