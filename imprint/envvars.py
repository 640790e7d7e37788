"""Every environment variable Imprint reads or acts on. No other module spells one out."""

from __future__ import annotations

HOME = "IMPRINT_HOME"
DEVICE = "IMPRINT_DEVICE"
GPU_DEVICE = "IMPRINT_GPU_DEVICE"
SERVER_HOST = "IMPRINT_SERVER_HOST"
SERVER_PORT = "IMPRINT_SERVER_PORT"
SERVER_TOKEN = "IMPRINT_SERVER_TOKEN"  # noqa: S105 - the variable's name, not a secret
MODEL = "IMPRINT_MODEL"
VRAM_GB = "IMPRINT_VRAM_GB"
ALLOW_SOFTWARE_GPU = "IMPRINT_ALLOW_SOFTWARE_GPU"

ALIASES: dict[str, str] = {
    DEVICE: "model.device",
    GPU_DEVICE: "model.gpu_device",
    MODEL: "model.name",
    SERVER_HOST: "server.host",
    SERVER_PORT: "server.port",
    SERVER_TOKEN: "server.token",
}
"""Short names of configuration keys; each key `a.b` is also read from `IMPRINT_A_B`."""

OTHERS: frozenset[str] = frozenset({HOME, VRAM_GB, ALLOW_SOFTWARE_GPU})
"""Names beginning with IMPRINT_ that are no configuration key."""


def name_of_key(key: str) -> str:
    """Return the environment variable of a configuration key: `model.gpu_device` -> `IMPRINT_MODEL_GPU_DEVICE`."""
    return "IMPRINT_" + key.replace(".", "_").upper()
