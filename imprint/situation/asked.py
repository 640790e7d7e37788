"""What was asked for and has no effect: options and keys that another one makes idle."""

from __future__ import annotations

from imprint.context import Context
from imprint.hints import helps
from imprint.results import Notice
from imprint.situation.inputs import request_of


def unused_gpu_device(context: Context, *, written: bool = False) -> tuple[Notice, ...]:
    """Return the warning that a GPU was chosen while the configured device is the CPU.

    It was chosen with an option of this run, or, `written`, in the configuration just now.
    """
    asked = request_of(context)
    if asked.device != "cpu" or asked.gpu_device == "auto":
        return ()
    if written:
        message, hint = "model.gpu_device", helps("gpu-device-unused-set")
    elif "model.gpu_device" in context.flags:
        message, hint = f"`--gpu-device {asked.gpu_device}`", helps("gpu-device-unused")
    else:
        return ()
    return (Notice("gpu-device-unused", f"{message} has no effect while model.device is cpu", hint),)
