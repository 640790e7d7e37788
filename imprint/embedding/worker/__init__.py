"""What runs inside a target environment to embed text: Python 3.9 syntax, and nothing of Imprint beside this package.

The tool starts it under the target's interpreter as the top-level package `worker` (see BOOT in `client.py`), so its
modules import each other relatively and otherwise only numpy, onnxruntime, tokenizers, orjson and the standard
library. `frames` and `batching` are pure and are used on both sides.
"""
