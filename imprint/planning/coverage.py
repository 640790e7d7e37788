"""Which GPU the machine code of a wheel runs on, and how.

Source: NVIDIA's CUDA programming guide, on binary and PTX compatibility. Native code for X.Y runs on X.Z with
Z >= Y; an `a` target runs on exactly its capability; PTX for X.Y is compiled by the driver for X.Y and everything
later, when the driver's CUDA is at least the toolkit that made the PTX.
"""

from __future__ import annotations

from imprint.planning.builds import Ptx, Wheel
from imprint.planning.versions import Pair

NATIVE = "native"
PTX = "ptx"


def runs_native(wheel: Wheel, capability: Pair) -> bool:
    """Whether the wheel holds machine code that runs as it is on this compute capability."""
    return any(
        target.capability == capability
        or (not target.exact and target.capability[0] == capability[0] and target.capability[1] <= capability[1])
        for target in wheel.native
    )


def ptx_for(wheel: Wheel, capability: Pair) -> Ptx | None:
    """Return the PTX that could be compiled for this capability and asks least of the driver, None without any."""
    usable = [ptx for ptx in wheel.ptx if ptx.capability <= capability]
    return min(usable, key=lambda ptx: (ptx.toolkit, ptx.capability), default=None)


def how_it_runs(wheel: Wheel, capability: Pair | None, cuda: Pair | None) -> str | None:
    """Return `native`, `ptx` or None, for a GPU of this capability under a driver of this CUDA version.

    An unknown capability is not covered; an unknown CUDA version compiles no PTX.
    """
    if capability is None:
        return None
    if runs_native(wheel, capability):
        return NATIVE
    ptx = ptx_for(wheel, capability)
    return PTX if ptx is not None and cuda is not None and cuda >= ptx.toolkit else None
