"""The loop most programs have: batches in the order of the texts, padded to the longest, default session options.

Runs in a target environment: `plain_loop.py MODEL TOKENIZER TEXTS.jsonl OUT.npy BATCH`. Prints one JSON line.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, or it sends

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

MAX_TOKENS = 256


def main(model: str, tokenizer_file: str, texts_file: str, output: str, batch: int) -> None:
    """Embed every text and save the unit vectors, in order."""
    with open(texts_file, encoding="utf-8") as file:  # noqa: PTH123 - as plain as can be
        texts = [json.loads(line)["text"] for line in file]
    tokenizer = Tokenizer.from_file(tokenizer_file)
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = []
    started = time.perf_counter()
    for start in range(0, len(texts), batch):
        encodings = tokenizer.encode_batch(texts[start : start + batch])
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, feed)[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        rows.append(pooled / np.linalg.norm(pooled, axis=1, keepdims=True))
    seconds = time.perf_counter() - started
    np.save(output, np.concatenate(rows).astype(np.float32))
    sys.stdout.write(json.dumps({"texts": len(texts), "loop_seconds": seconds}) + "\n")


if __name__ == "__main__":
    model_, tokenizer_, texts_, output_, batch_ = sys.argv[1:]
    main(model_, tokenizer_, texts_, output_, int(batch_))
