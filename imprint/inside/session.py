"""Opens the model in ONNX Runtime and runs one batch; reports the provider that is truly used.

The settings are measured ones, see the decision record on embedding batches: several threads each running the session
on one core beat one run spread over all cores, and memory is kept from growing in powers of two.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .loading import CPU, CUDA, load_onnxruntime
from .pooling import Array, mean_pool, unit

ort = load_onnxruntime()

_CUDA_OPTIONS = {
    "device_id": "0",  # the parent shows us the planned GPU alone
    "arena_extend_strategy": "kSameAsRequested",
    "cudnn_conv_algo_search": "HEURISTIC",
    "use_tf32": "0",
}


class OutOfMemoryError(Exception):
    """One text alone does not fit into memory."""


class Session:
    """The model on one device. `run` may be called from several threads at once."""

    def __init__(self, model: str, device: str, profile: str = "") -> None:
        """Load the model file; `device` is `cpu` or `gpu`. Raises what ONNX Runtime raises.

        With `profile`, the beginning of a file's path, every run is measured until `end_profile`.
        """
        ort.set_default_logger_severity(3)
        options = _options(device)
        options.enable_profiling = bool(profile)
        if profile:
            options.profile_file_prefix = profile
        if sys.platform == "linux" and not os.path.exists("/proc/self/fd"):  # noqa: PTH110 - pathlib's own raises
            self._weights = _hand_over_weights(options, Path(model))  # it keeps no copy of its own
        self._session: Any = ort.InferenceSession(model, options, providers=_providers(device))
        # What was said at the start must stay true: a device that fails later is an error, not a slower run.
        self._session.disable_fallback()
        self.provider: str = self._session.get_providers()[0]
        self._inputs = [given.name for given in self._session.get_inputs()]
        shape = self._session.get_outputs()[0].shape
        self.dims = shape[-1] if shape and isinstance(shape[-1], int) else None

    def run(self, ids: Sequence[Array]) -> Array:
        """Return unit vectors [n, dims], float32, of texts given as int arrays of token ids.

        A batch that does not fit into memory is halved. Raises OutOfMemoryError for a single text, BadVectorError.
        """
        try:
            return self._run(ids)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            if len(ids) == 1:
                raise OutOfMemoryError(str(error)[-300:]) from error
        half = len(ids) // 2
        return np.concatenate([self.run(ids[:half]), self.run(ids[half:])])

    def end_profile(self) -> str:
        """Stop measuring and return the path of the profile (JSON)."""
        return str(self._session.end_profiling())

    def _run(self, ids: Sequence[Array]) -> Array:
        tokens = np.zeros((len(ids), max(len(one) for one in ids)), dtype=np.int64)
        mask = np.zeros_like(tokens)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        known: dict[str, Any] = {"input_ids": tokens, "attention_mask": mask}
        feed = {name: known[name] if name in known else np.zeros_like(tokens) for name in self._inputs}
        return unit(mean_pool(self._session.run(None, feed)[0], mask))


def _options(device: str) -> Any:  # noqa: ANN401 - untyped
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a pattern is kept for every shape, and shapes differ from batch to batch
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if device == "cpu":
        # An arena that grows by what is asked, where the default doubles.
        memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        ort.create_and_register_allocator(memory, ort.OrtArenaCfg(0, 1, -1, -1))
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


def _hand_over_weights(options: Any, model: Path) -> bytes:  # noqa: ANN401 - untyped
    """Give a session the weights beside its model from memory: from 1.31 on it resolves their path through /proc."""
    weights = model.with_suffix(".weights")
    content = weights.read_bytes() if weights.is_file() else b""
    if content and hasattr(options, "add_external_initializers_from_files_in_memory"):
        options.add_external_initializers_from_files_in_memory([weights.name], [content], [len(content)])
    return content


def _providers(device: str) -> list[Any]:
    if device != "gpu" or CUDA not in ort.get_available_providers():
        return [CPU]
    ort.preload_dlls()
    return [(CUDA, _CUDA_OPTIONS), CPU]


def _is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words in text for words in ("bad allocation", "bad_alloc", "failed to allocate", "out of memory")
    )
