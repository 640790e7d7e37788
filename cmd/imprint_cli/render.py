"""Renders the payload of each operation as plain text: values in, text out, no printing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from imprint.sizes import in_units as size
from imprint_cli.human import table

if TYPE_CHECKING:
    from imprint.operations.check import CheckReport, Placement
    from imprint.operations.config import ConfigFile, Keys, ReportedKey, SetKey, UnsetKey
    from imprint.operations.devices import Devices
    from imprint.operations.model import ModelPath
    from imprint.operations.plan import Download
    from imprint.operations.status import Status
    from imprint.planning.model import Device, Gate, Installed, Plan


def describe_build(build: str | None, version: str | None, device: Device | None = None) -> str:
    """Return `cuda12 1.26.0 on GPU 0 (NVIDIA RTX A4000)` or `cpu 1.31.1`."""
    if build is None:
        return "no build"
    text = f"{build} {version}" if version else build
    if device is not None:
        index = "" if device.index is None else f" {device.index}"
        text += f" on GPU{index} ({device.name or device.uuid or 'unnamed'})"
    return text


def render_plan(plan: Plan, download: Download | None = None) -> str:
    """Render a plan: the decision and its reason first, then what was refused, notes, sizes, what is pending.

    `download` is what setup would fetch, for embedding too.
    """
    build = describe_build(plan.build, plan.version, plan.device)
    kept = plan.provisional and plan.build not in {None, "cpu"} and plan.device is None
    # What is installed for a GPU stays although none can be used at the moment: the reason says why.
    lines = [f"plan: keep {build} for now, although {plan.reason}" if kept else f"plan: {build}: {plan.reason}"]
    lines.append(f"code: {plan.code}" + (" (provisional)" if plan.provisional else ""))
    if plan.hint:
        lines.append(f"hint: {plan.hint}")
    lines += _refusals(plan)
    lines += [f"note: {note.reason}" for note in plan.notes]
    if plan.build is not None and plan.pending and download is not None:
        lines.append(render_download(download) if plan.download_bytes != 0 else "download: what is missing")
    lines.append(
        f"installed: {_installed(plan.installed)}; {'change pending' if plan.pending else 'nothing to change'}"
    )
    return "\n".join([*lines, *_gates(plan.gates or ())])


def _installed(have: Installed | None) -> str:
    if have is None:
        return "nothing"
    if have.build is None:
        return f"ONNX Runtime {have.version}, which is not one of Imprint's builds"
    return describe_build(have.build, have.version)


def render_download(download: Download) -> str:
    """Render how much comes over the network and for what, and what it takes on disk."""
    named = ((download.build, "the build"), (download.packages, "other packages"), (download.model, "the model"))
    parts = [f"{size(count)} for {what}" for count, what in named if count != 0]
    total = f"{size(download.total)}: " if len(parts) > 1 and download.total is not None else ""
    disk = f"; on disk: about {size(download.on_disk)}" if download.on_disk else ""
    return f"download: at most {total}{', '.join(parts)}{disk}"


def _refusals(plan: Plan) -> list[str]:
    """Return a line for each reason that refused builds, unless nobody asked for them."""
    together: dict[tuple[str, str, str | None], list[str]] = {}
    for refusal in plan.refused:
        if refusal.code != "device-cpu":
            together.setdefault((refusal.reason, refusal.code, refusal.hint), []).append(refusal.build)
    lines = []
    for (reason, code, hint), builds in together.items():
        lines.append(f"not {', '.join(builds)}: {reason} ({code})")
        if hint and hint != plan.hint:
            lines.append(f"  hint: {hint}")
    return lines


def _gates(gates: Iterable[Gate]) -> list[str]:
    """Return a line for each build with every gate it met, in order."""
    lines: dict[str, list[str]] = {}
    for gate in gates:
        because = f" ({gate.reason})" if gate.reason else ""
        lines.setdefault(gate.build, []).append(f"{gate.gate} {gate.outcome}{because}")
    return [f"gates of {build}: {', '.join(met)}" for build, met in lines.items()]


def render_devices(found: Devices) -> str:
    """Render the table of GPUs; without any, the one reason."""
    if not found.devices:
        return f"no GPU: {found.reason}" if found.reason else "no GPU"
    rows = [
        [
            *(_text(one) for one in (device.index, device.name, device.uuid, device.compute_capability)),
            "unknown" if device.memory_mib is None else f"{device.memory_mib} MiB",
            ", ".join(f"{build.build} ({build.how})" for build in device.builds) or f"none: {device.reason}",
        ]
        for device in found.devices
    ]
    return table(["GPU", "name", "uuid", "capability", "memory", "builds"], rows)


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)


def render_status(status: Status) -> str:
    """Render the authoritative line, and since when that holds."""
    return f"{status.line}; since {status.since}" if status.since and status.embeds else status.line


_STEPS = {"conv": "convolution", "matmul": "matrix product", "ort": "ONNX Runtime operator"}


def render_check(check: CheckReport) -> str:
    """Render the outcome of a check, then each step."""
    head = f"check: {check.outcome}" + (f" ({check.kind})" if check.kind else "")
    where = check.device.name or ("the CPU" if check.device.kind == "cpu" else "the GPU")
    lines = [f"{head} on {where}"]
    if right := [_STEPS.get(name, name) for name, step in check.steps.items() if step.ok]:
        lines.append(f"  {', '.join(right)}: ok")
    for name, step in check.steps.items():
        if not step.ok:
            lines.append(f"  {_STEPS.get(name, name)}: failed" + (f" ({step.error})" if step.error else ""))
    return "\n".join([*lines, *(_placement(check.placement) if check.placement is not None else ())])


def _placement(placed: Placement) -> list[str]:
    lines = [f"placement of {placed.model}:" + (f" does not run: {placed.error}" if placed.error else "")]
    for name, share in placed.providers.items():
        time = "" if share.share_of_time is None else f", {share.share_of_time:.0%} of the time"
        lines.append(f"  {name}: {share.nodes} nodes ({share.share_of_nodes or 0:.0%}){time}")
    if len(placed.providers) > 1 or not placed.runs:
        for row in placed.on_cpu:
            normal = "normal" if row.normal else "not normal"
            nodes = "1 node" if row.nodes == 1 else f"{row.nodes} nodes"
            lines.append(f"  {row.op} on the CPU, {nodes}: {normal}, {row.reason}")
    return lines


def render_keys(found: Keys, *, origins: bool = False) -> str:
    """Render `key = value` lines; an unset key shows `(not set)`."""
    return "\n".join(f"{key.key} = {render_one(key.value)}" + _origin(key, origins) for key in found.keys)


def render_value(found: Keys, *, origin: bool = False) -> str:
    """Render the bare value of one key, nothing when it has none."""
    (key,) = found.keys
    return "" if key.value is None else render_one(key.value) + _origin(key, origin)


def _origin(key: ReportedKey, shown: bool) -> str:
    if not shown:
        return ""
    return f"  ({key.origin}: {key.source})" if key.source else f"  ({key.origin})"


def render_one(value: object) -> str:
    """Return a configuration value as a person types it: `true`, `8790`, `auto`."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def render_set(changed: SetKey) -> str:
    """Render what was written, what that choice means on this machine, and how to apply it."""
    (key,) = changed.keys
    lines = [f"{key.key} = {render_one(changed.written)}"]
    for choice in key.choices:
        text = choice.detail or choice.reason
        if choice.value == changed.written and text:
            lines.append(f"{choice.value}: " + ("" if choice.available else "unavailable here: ") + text)
    return "\n".join([*lines, *_apply(changed)])


def render_unset(changed: UnsetKey) -> str:
    """Render the value that holds now that the file no longer names one; a key that nobody knows has none."""
    if not changed.keys:
        return "removed from the file"
    (key,) = changed.keys
    return "\n".join([f"{key.key} = {render_one(key.value)}  ({key.origin})", *_apply(changed)])


def _apply(changed: SetKey | UnsetKey) -> list[str]:
    return [f"to apply: {changed.apply}"] if changed.apply else []


def render_path(found: ConfigFile | ModelPath) -> str:
    """Render the bare path."""
    return found.path
