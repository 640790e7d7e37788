"""Loads ONNX Runtime and says from where, and which build it is.

Arguments: a folder whose packages come before the target's own, or nothing, and the file to answer in.
"""

from __future__ import annotations

import sys

from .answering import Answer, of_error
from .loading import describe, load_onnxruntime


def main() -> None:
    """Load, and answer; an import that fails is an answer too."""
    answer = Answer(build=None, error=None)
    answer.tell("import")
    if sys.argv[1]:
        sys.path.insert(0, sys.argv[1])
    try:
        build = describe(load_onnxruntime())
    except BaseException as problem:  # whatever stops the import is what was asked for
        answer.end(error=of_error(problem))
    answer.end(build=build)
