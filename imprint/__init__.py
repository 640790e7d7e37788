"""Puts the right ONNX Runtime on a machine for embedding text, proves that it works, and says why."""

__version__ = "0.1.0"
