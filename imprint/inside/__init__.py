"""What runs inside a target, one program for each mode: `load`, `check`, `probe`, `placement` and `embed`.

`runtime/check/children.py` starts each with the target's interpreter as a package of its own: a target sees nothing
else of ours: Python 3.9 syntax, relative imports within, and otherwise only the standard library and what a target
holds (numpy, onnxruntime, tokenizers, orjson). Nothing here judges; what is seen is told, and judged outside. `frames`
and `batching` are pure and are used on both sides.
"""
