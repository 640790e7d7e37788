"""Codes about the environment that holds ONNX Runtime: its interpreter, its files, and the build in it."""

from __future__ import annotations

from imprint.doctor.explanation import Explanation

TARGET: dict[str, Explanation] = {
    "not-installed": Explanation(
        "commands say that nothing is installed or that no runtime is set up",
        "no ONNX Runtime was installed there, so nothing can be embedded",
        "`imprint setup`, with `--venv PATH` for an environment of your own",
    ),
    "not-an-environment": Explanation(
        "`--venv` does not accept the folder",
        "the folder that was named holds no Python environment",
        "name the folder that contains `bin/python` (on Windows `Scripts\\python.exe`), "
        "or make one with `python3 -m venv PATH`",
    ),
    "interpreter-gone": Explanation(
        "uv says `No virtual environment found`; scripts of the environment say `bad interpreter`",
        "the Python that the environment was made with is gone, so nothing in it can run",
        "recreate the environment: `imprint setup` for the managed one, `python3 -m venv --clear PATH` for your own",
    ),
    "interpreter-unusable": Explanation(
        "the environment's Python is there and does not start",
        "the interpreter does not answer as a Python does: not executable, for another machine, or broken",
        "recreate the environment: `imprint setup` for the managed one, `python3 -m venv --clear PATH` for your own",
    ),
    "interpreter-changed": Explanation(
        "`No module named onnxruntime`, although its files are there",
        "the environment now starts another Python version than its packages were installed for",
        "recreate the environment: `imprint setup` for the managed one, `python3 -m venv --clear PATH` for your own",
    ),
    "install-incomplete": Explanation(
        "an installation was killed, ran out of disk or lost its network; installers say `already satisfied` since",
        "files that a package lists are missing or have another size: an installation was cut short or changed",
        "`imprint setup --repair`, after freeing space if the disk was full; a plain install changes nothing",
    ),
    "links-dangling": Explanation(
        "modules vanished after a cache was cleaned",
        "files of the environment are links into a cache that is gone (uv's `--link-mode symlink`)",
        "`imprint setup --repair`; do not use symbolic links to a cache",
    ),
    "metadata-damaged": Explanation(
        "uninstalling ends with `RECORD file not found`; the package still works",
        "a package's own records (RECORD, METADATA) are missing, so it cannot be removed or checked",
        "`imprint setup --repair` removes the package's folders and installs it anew",
    ),
    "runtime-hollow": Explanation(
        "`import onnxruntime` works and `InferenceSession` does not exist, or the module is gone, "
        "after another ONNX Runtime package was removed",
        "ONNX Runtime is listed as installed and its files are gone: removing one of two builds takes both",
        "`imprint setup --repair`; a plain install says that it is already satisfied",
    ),
    "shared-files-removed": Explanation(
        "a CUDA library is missing after the packages of another CUDA version were removed",
        "an NVIDIA package is listed and its libraries are gone: packages of CUDA 12 and 13 own some files together",
        "reinstall what is left by force; remove such packages all at once, not one by one",
    ),
    "install-tree-read-only": Explanation(
        "installing ends with `Read-only file system` or permission denied",
        "the environment's packages cannot be changed, and the plan wants another build than it holds",
        "nothing was started; use an environment you may write, or leave out `--venv` for Imprint's own under "
        "`IMPRINT_HOME`",
    ),
    "change-interrupted": Explanation(
        "`imprint setup --venv` was killed",
        "a change of this environment was begun and did not end",
        "run the same `imprint setup --venv PATH` again: it finishes what was begun",
    ),
    "change-pending": Explanation(
        "a GPU was added or the configuration changed, and embeddings still run as before",
        "what is installed differs from what the configuration and this machine call for",
        "`imprint setup`",
    ),
    "busy": Explanation(
        "a command waits, or ends with exit code 4",
        "another Imprint is changing the runtime right now; what doctor sees may be half-way",
        "wait for it to end, then run `imprint doctor` again",
    ),
}

RUNTIME: dict[str, Explanation] = {
    "duplicate-runtimes": Explanation(
        "the CUDA provider vanished after another package pulled in `onnxruntime`; or everything works until the next "
        "install",
        "several builds of ONNX Runtime are installed over the same folder; which one loads depends on their order",
        "remove them all, then install only the planned one: `imprint setup --repair` does",
    ),
    "build-mismatch": Explanation(
        "the version or the providers are not those of the package that is listed",
        "the files that load belong to another build than the one the metadata names: "
        "an earlier install or another index left them",
        "`imprint setup --repair`",
    ),
    "dependency-missing": Explanation(
        "importing ONNX Runtime fails and names another module",
        "a package that ONNX Runtime needs is missing or of a version it cannot use",
        "install the package that is named",
    ),
    "msvc-runtime-old": Explanation(
        "Windows: `DLL load failed while importing onnxruntime_pybind11_state`, WinError 1114; the CPU fails too",
        "the Visual C++ runtime that is found first is older than ONNX Runtime needs",
        "install the current Visual C++ redistributable (x64) and restart; look for an older `msvcp140.dll` earlier on "
        "PATH or beside `python.exe`",
    ),
    "runtime-import-failed": Explanation(
        "`import onnxruntime` raises an error",
        "ONNX Runtime does not load, so nothing can be embedded",
        "`imprint setup --repair`",
    ),
    "runtime-crashed": Explanation(
        "Python dies with a segmentation fault or a bus error when a session is made",
        "loading ONNX Runtime or its GPU provider ends the process: most often a library is cut short",
        "`imprint setup --repair`",
    ),
    "cpu-instruction-missing": Explanation(
        "Python dies with `Illegal instruction`",
        "a library uses instructions that this processor does not have, or that its virtual machine hides",
        "let the virtual machine pass on the host's processor (for QEMU, `-cpu host`), or use another machine",
    ),
    "runtime-hangs": Explanation(
        "embedding or importing never comes back",
        "ONNX Runtime was started and gave no answer in time; that proves nothing about the build",
        "look for a stuck driver or network disk, then run `imprint check`",
    ),
    "cpu-session-failed": Explanation(
        "ONNX Runtime loads, and not even the CPU computes",
        "a session on the CPU could not be made or did not compute",
        "`imprint setup --repair`",
    ),
}
