"""Loads ONNX Runtime and says from where, and which build it is, as one line of JSON on stdout.

This file runs alone, with a target's interpreter: it imports nothing of imprint, needs only what a target holds, and
keeps to Python 3.9. Call: `python -I -B load_child.py [FOLDER]`; packages in FOLDER come before the target's own.
"""

import json
import os
import sys


def main() -> None:
    """Load, and print the answer; an import that fails is an answer too."""
    # Libraries may print to stdout; only the answer belongs there.
    answer = os.dup(1)
    os.dup2(2, 1)
    if len(sys.argv) > 1:
        sys.path.insert(0, sys.argv[1])
    facts: dict[str, str | None] = {"file": None, "package": None, "version": None, "error": None}
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it reads this as it loads; whoever starts this file sets it too
    try:
        import onnxruntime
        from onnxruntime.capi import build_and_package_info as build

        facts["file"] = getattr(onnxruntime, "__file__", None)
        facts["package"] = getattr(build, "package_name", None)
        facts["version"] = getattr(onnxruntime, "__version__", None)
    except BaseException as error:  # whatever stops the import is what was asked for
        facts["error"] = f"{type(error).__name__}: {error}"
    os.write(answer, b"\n" + json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main()
