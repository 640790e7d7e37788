"""What people notice, in their words, and the codes to look at: the way into docs/troubleshooting.md."""

from __future__ import annotations

from imprint.values import Record


class Symptom(Record):
    """Something to be noticed, the finding codes it may come from (the likeliest first), and a first thing to do."""

    notice: str
    codes: tuple[str, ...]
    advice: str


def _symptom(notice: str, codes: str, advice: str) -> Symptom:
    return Symptom(notice, tuple(codes.split()), advice)


SYMPTOMS: tuple[Symptom, ...] = (
    _symptom(
        "Everything works, nothing errors, and embedding is ten times slower than the card should be",
        "runtime-libs-missing driver-too-old not-proved provider-not-requested duplicate-runtimes gpu-unavailable "
        "change-pending embedding-on-cpu",
        "`imprint status` says in one line what embeddings run on, and why. Believe that line, not the list of "
        "available providers, which describes the package and not the machine.",
    ),
    _symptom(
        "A CUDA library cannot be found, and `ldconfig -p | grep libcublas` prints nothing",
        "runtime-libs-missing libs-present-not-loaded cuda-major-mismatch",
        "No CUDA toolkit has to be installed: the libraries come as packages beside ONNX Runtime, and the driver "
        "supplies `libcuda` alone.",
    ),
    _symptom(
        "The driver is installed, and there is no usable device",
        "driver-too-old no-device gpus-hidden driver-mismatch-reboot device-nodes-denied",
        "`imprint devices` shows each GPU with the builds that run on it, or the reason why none does.",
    ),
    _symptom(
        "The GPU is not used on a server without a display",
        "no-device device-nodes-denied driver-missing",
        "No display server is needed, only NVIDIA's driver.",
    ),
    _symptom(
        "The machine stays on the CPU whatever is set, and it is an old one",
        "cpu-no-avx2 no-kernel-for-gpu driver-too-old cudnn-too-new",
        "An old processor only makes the CPU slow; whether an old GPU is used depends on its compute capability, "
        "which `imprint devices` shows.",
    ),
    _symptom(
        "A GPU of AMD or Intel is not used, or Vulkan finds no device",
        "gpu-build-without-gpu gpu-unavailable device-nodes-denied",
        "The CUDA builds run on NVIDIA GPUs alone, and no ROCm build of ONNX Runtime is on the package index. The "
        "CPU is used, and `imprint plan` says so.",
    ),
    _symptom(
        "Everything installs cleanly and then no usable GPU is found; as root it works",
        "device-nodes-denied",
        "The device nodes (`/dev/nvidia*`, `/dev/kfd`, `/dev/dri/renderD*`) belong to a group you are not in.",
    ),
    _symptom(
        "A GPU was added, or the CPU build was installed first, and setting up again keeps what is there",
        "change-pending unknown-variable not-proved",
        "`imprint setup` follows the configuration: with `model.device` at `cpu`, its default, no GPU is looked for.",
    ),
    _symptom(
        "A setting was changed and nothing changes",
        "change-pending unknown-variable config-invalid",
        "A change of device is applied by `imprint setup`, and what runs has to be started again. "
        "`imprint config list --show-origin` shows which of several places wins.",
    ),
    _symptom(
        "The log says that some nodes run on the CPU although the GPU is used",
        "ok-gpu embedding-on-cpu",
        "Operators that compute shapes belong on the CPU. `imprint check --placement` shows the share of nodes and "
        "time on each, and which operators on the CPU are normal.",
    ),
    _symptom(
        "Nothing happens on the GPU: its memory does not grow when the model is loaded",
        "embedding-on-cpu provider-not-requested runtime-libs-missing",
        "Memory is the surest sign from outside: it grows by about the size of the model when the GPU is used.",
    ),
    _symptom(
        "Embedding ends because memory ran out, on the GPU or of the machine",
        "declared-memory embedding-failed gpu-run-failed",
        "Lower `model.batch_tokens`, then `model.threads`; a batch that does not fit is halved by itself. Close what "
        "else uses the card.",
    ),
    _symptom(
        "Work is refused or fails because more GPU memory was declared than there is",
        "declared-memory",
        "`IMPRINT_VRAM_GB` is taken at its word by whoever reads it. If in doubt, declare less.",
    ),
    _symptom(
        "Of several GPUs the wrong one is used, or a model is refused that would fit into all of them together",
        "gpus-hidden declared-memory",
        "Embeddings run on one GPU. `model.gpu_device` chooses it, by UUID best; `auto` takes a discrete card before "
        "an integrated one.",
    ),
    _symptom(
        "The first run on a GPU takes minutes, the next ones do not",
        "runtime-hangs not-proved",
        "With the reason code `gpu-jit` the driver compiles every kernel once and keeps the result. That is no fault.",
    ),
    _symptom(
        "Requests time out on a machine without a GPU",
        "cpu-no-avx2 runtime-hangs embedding-failed",
        "`imprint embed --input FILE --output out.npy` says how long it took; size the client's deadline by that.",
    ),
    _symptom(
        "No model is listed, or embedding says that it is not there",
        "model-missing model-damaged",
        "`imprint setup` brings the configured model; `imprint model list` shows which are on disk.",
    ),
    _symptom(
        "Every embedding request to a `llama-server` of your own is answered with 501",
        "",
        "That server was started without `--embeddings`. It is not part of Imprint, and `imprint embed` does not "
        "need it.",
    ),
    _symptom(
        "It worked until another package was installed or removed",
        "duplicate-runtimes runtime-hollow shared-files-removed build-mismatch cudnn-clash libs-untested",
        "Look at `imprint doctor --venv PATH` before installing anything: a plain install often changes nothing.",
    ),
    _symptom(
        "It worked until the driver or the system was updated",
        "driver-mismatch-reboot check-stale interpreter-gone interpreter-changed uvm-unavailable",
        "Restart the machine first.",
    ),
    _symptom(
        "It works on the host and not in the container, or not in WSL",
        "container-no-gpu-runtime forward-compat-on-geforce gpu-lost-in-container wsl-linux-driver-installed "
        "uvm-unavailable",
        "What `imprint machine` prints inside is what counts, not `nvidia-smi` outside.",
    ),
    _symptom(
        "An installation was killed or the disk was full, and everything says that it is installed",
        "install-incomplete metadata-damaged change-interrupted disk-low",
        "Installers trust the metadata of a package. Doctor compares its files.",
    ),
    _symptom(
        "Importing ONNX Runtime fails, or Python dies",
        "runtime-import-failed dependency-missing msvc-runtime-old runtime-crashed cpu-instruction-missing "
        "links-dangling",
        "`imprint doctor` loads it in a process of its own and says where that one stopped.",
    ),
    _symptom(
        "The disk fills up",
        "space-unused cache-on-other-disk disk-low",
        "`imprint prune` frees what nothing uses and says how much that was.",
    ),
)
"""What people notice, in the order of the page."""
