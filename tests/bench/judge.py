"""Judges embeddings: are they unit vectors, do they equal a plain loop's, does search find the right module.

Runs in a target environment: `judge.py FILES.json`, an object that names the npy and jsonl files. Prints one JSON line.
"""

from __future__ import annotations

import json
import sys

import numpy as np


def main(files_file: str) -> None:
    """Print norm errors, cosines to the plain loop's rows (of the first texts), and which queries were found."""
    with open(files_file, encoding="utf-8") as file:  # noqa: PTH123
        files = json.load(file)
    rows = np.load(files["rows"])
    result = {"rows": list(rows.shape), "norm_error": float(np.abs(np.linalg.norm(rows, axis=1) - 1).max())}
    if "plain" in files:
        plain = np.load(files["plain"])
        picked = rows[files["picked"]] if "picked" in files else rows[: len(plain)]
        result["compared"] = len(plain)
        result["min_cosine"] = float(np.einsum("nd,nd->n", plain.astype(np.float64), picked.astype(np.float64)).min())
    if "queries" in files:
        with open(files["texts"], encoding="utf-8") as file:  # noqa: PTH123
            modules = [json.loads(line)["module"] for line in file]
        with open(files["expected"], encoding="utf-8") as file:  # noqa: PTH123
            expected = json.load(file)["queries"]
        nearest = np.argsort(-np.load(files["queries"]) @ rows.T, axis=1)[:, :5]
        hits = [
            {"query": query["query"], "top": [modules[index] for index in top], "modules": query["modules"]}
            for query, top in zip(expected, nearest)  # noqa: B905 - Python 3.9 may run this
        ]
        result["found"] = sum(bool(set(hit["top"]) & set(hit["modules"])) for hit in hits)
        result["of"] = len(hits)
        result["missed"] = [hit for hit in hits if not set(hit["top"]) & set(hit["modules"])]
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
