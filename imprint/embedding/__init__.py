"""Models on disk, and the worker that embeds inside the target environment."""
