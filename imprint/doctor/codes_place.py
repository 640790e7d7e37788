"""Codes about what surrounds the runtime: configuration and state files, model, processor and disk."""

from __future__ import annotations

from imprint.doctor.explanation import Explanation

STATE: dict[str, Explanation] = {
    "home-not-writable": Explanation(
        "setup and `config set` end with permission denied, or say that the file system is read-only",
        "Imprint cannot write where it keeps its files, so nothing can be set up or changed",
        "make the folder writable for you, or set `IMPRINT_HOME` to one that is",
    ),
    "state-damaged": Explanation(
        "commands warn about a file under `data/` or `runtimes/`, or a file `….corrupt-…` appeared there",
        "a state file is damaged and counts as missing; commands that write rename it, the others change nothing",
        "`imprint setup` sets it aside and restores what it held; delete the renamed file when you do not need it",
    ),
    "state-newer": Explanation(
        "every command ends with exit code 3",
        "a newer Imprint wrote a state file; this one leaves it alone and cannot work with it",
        "use the newer Imprint, or set `IMPRINT_HOME` to another folder",
    ),
    "state-unreadable": Explanation(
        "commands end with exit code 3 and name a file under `data/`",
        "a state file cannot be read and could not be set aside",
        "check its permissions, or move it away by hand",
    ),
    "config-unreadable": Explanation(
        "every command that needs the configuration refuses to run",
        "the configuration file is not valid, so no command that needs it runs",
        "mend the line that is named; `imprint config path` prints where the file is",
    ),
    "config-invalid": Explanation(
        "a command names a key or a value of `config.toml` and stops",
        "the configuration names a key or a value that does not exist",
        "`imprint config set KEY VALUE` or `imprint config unset KEY`",
    ),
    "environment-invalid": Explanation(
        "a command names an `IMPRINT_…` variable and stops",
        "an environment variable holds a value that is not valid, or two of them contradict each other",
        "correct or unset the variable that is named",
    ),
    "unknown-variable": Explanation(
        "a setting made in the environment has no effect",
        "an environment variable begins with IMPRINT_ and means nothing; it is most likely misspelt",
        "correct its name or unset it",
    ),
    "declared-memory": Explanation(
        "work that should fit into the GPU ends out of memory",
        "IMPRINT_VRAM_GB declares more memory than the largest GPU here has; nothing checks the number but this",
        "declare at most what the largest single card has, or unset `IMPRINT_VRAM_GB`",
    ),
}

PLACE: dict[str, Explanation] = {
    "model-missing": Explanation(
        "embedding ends with `model-missing`",
        "the configured model is not on disk",
        "`imprint setup` installs it",
    ),
    "model-damaged": Explanation(
        "embedding ends with `model-unusable` or gives other vectors than before",
        "files of the configured model are missing or damaged",
        "`imprint setup --repair`",
    ),
    "embedding-failed": Explanation(
        "the runtime passes its checks and embedding a text still fails",
        "a real embedding was tried and did not succeed",
        "follow what the finding says; `imprint check` tries the runtime without the model",
    ),
    "cpu-no-avx2": Explanation(
        "embedding on the CPU is several times slower than on other machines of that age",
        "this processor has no AVX2, or a virtual machine hides it; ONNX Runtime falls back to much slower code",
        "let the virtual machine pass on the host's processor (for QEMU, `-cpu host`); on real hardware without AVX2 "
        "nothing helps but another machine",
    ),
    "disk-low": Explanation(
        "setup or embedding ends with exit code 7 or `No space left on device`",
        "the disk that holds Imprint's files is nearly full; the next change of the runtime may not fit",
        "free some space there, or set `IMPRINT_HOME` to a folder on another disk",
    ),
    "space-unused": Explanation(
        "Imprint's folder takes several GB more than the runtime in use",
        "runtimes or downloads from before are still on disk and nothing uses them",
        "`imprint prune`; what it leaves in `.uv-cache` can be deleted by hand, nothing runs from there",
    ),
    "cache-on-other-disk": Explanation(
        "a runtime takes twice its size on disk, and setup copies for minutes",
        "the cache and the runtimes lie on different file systems, so files are copied where they would be linked",
        "let `IMPRINT_HOME` be one folder on one disk: remove the link or mount below it",
    ),
}
