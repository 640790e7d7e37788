"""Every code a finding can have, in sections: what a person notices, what it means, and what mends it.

docs/troubleshooting.md is generated from this table, and `doctor --explain` prints it. A finding itself has the
particulars: which file, which version, the exact command.
"""

from __future__ import annotations

from imprint.doctor import codes_gpu, codes_place, codes_target
from imprint.doctor.explanation import Explanation

SECTIONS: dict[str, dict[str, Explanation]] = {
    "Nothing is wrong": {
        "ok": Explanation("", "the check found nothing wrong", None),
        "ok-cpu": Explanation(
            "embeddings run on the CPU, as they should",
            "the CPU was chosen, or it is all that this machine has for embeddings",
            None,
        ),
        "ok-gpu": Explanation(
            "embeddings run on the GPU; ONNX Runtime remarks that some nodes run on the CPU",
            "the GPU is used; operators that only compute shapes belong on the CPU and cost nothing there",
            None,
        ),
        "skipped": Explanation("", "the check needs a fact that is not there; the finding says which", None),
        "check-crashed": Explanation(
            "doctor reports a fault of its own",
            "the check itself failed, which is a bug in Imprint; the other checks are not affected",
            "run `imprint doctor --report` and report what it prints",
        ),
    },
    "Configuration and state": codes_place.STATE,
    "The environment that holds ONNX Runtime": codes_target.TARGET,
    "ONNX Runtime itself": codes_target.RUNTIME,
    "CUDA libraries": codes_gpu.LIBRARIES,
    "Driver and GPU": codes_gpu.DRIVER,
    "What embeddings run on": codes_gpu.DEVICE,
    "Model, processor and disk": codes_place.PLACE,
}
"""The codes by section, in the order of the page."""

CODES: dict[str, Explanation] = {code: found for section in SECTIONS.values() for code, found in section.items()}
"""Every code with its explanation."""
