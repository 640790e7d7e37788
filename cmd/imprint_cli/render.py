"""Renders the data of each operation as plain text: values in, text out, no printing."""

from collections.abc import Mapping, Sequence
from typing import Any

from imprint.sizes import in_units as size
from imprint_cli.human import table

Data = Mapping[str, Any]


def describe_build(build: str | None, version: str | None, device: Data | None) -> str:
    """Return `cuda12 1.26.0 on GPU 0 (NVIDIA RTX A4000)` or `cpu 1.31.1`."""
    if build is None:
        return "no build"
    text = f"{build} {version}" if version else build
    if device:
        index = "" if device.get("index") is None else f" {device['index']}"
        text += f" on GPU{index} ({device.get('name') or device.get('uuid') or 'unnamed'})"
    return text


def render_plan(data: Data, download: Data | None = None) -> str:
    """Render a plan: the decision and its reason first, then what was refused, notes, sizes, what is pending.

    `download` is what setup would fetch, for embedding too.
    """
    build = describe_build(data["build"], data["version"], data["device"])
    kept = data["provisional"] and data["build"] not in {None, "cpu"} and data["device"] is None
    # What is installed for a GPU stays although none can be used at the moment: the reason says why.
    lines = [f"plan: keep {build} for now, although {data['reason']}" if kept else f"plan: {build}: {data['reason']}"]
    lines.append(f"code: {data['code']}" + (" (provisional)" if data["provisional"] else ""))
    if data["hint"]:
        lines.append(f"hint: {data['hint']}")
    lines += _refusals(data)
    lines += [f"note: {note['reason']}" for note in data["notes"]]
    if data["build"] is not None and data["pending"] and download is not None:
        lines.append(render_download(download) if data["download_bytes"] != 0 else "download: what is missing")
    have = _installed(data["installed"])
    lines.append(f"installed: {have}; " + ("change pending" if data["pending"] else "nothing to change"))
    return "\n".join([*lines, *_gates(data.get("gates", ()))])


def _installed(data: Data | None) -> str:
    if data is None:
        return "nothing"
    if data["build"] is None:
        return f"ONNX Runtime {data['version']}, which is not one of Imprint's builds"
    return describe_build(data["build"], data["version"], None)


def render_download(data: Data) -> str:
    """Render how much comes over the network and for what, and what it takes on disk."""
    named = (("build", "the build"), ("packages", "other packages"), ("model", "the model"))
    parts = [f"{size(data[key])} for {what}" for key, what in named if data[key] != 0]
    total = f"{size(data['total'])}: " if len(parts) > 1 and data["total"] is not None else ""
    disk = f"; on disk: about {size(data['on_disk'])}" if data["on_disk"] else ""
    return f"download: at most {total}{', '.join(parts)}{disk}"


def _refusals(data: Data) -> list[str]:
    """Return a line for each reason that refused builds, unless nobody asked for them."""
    together: dict[tuple[str, str, str | None], list[str]] = {}
    for refusal in data["refused"]:
        if refusal["code"] != "device-cpu":
            together.setdefault((refusal["reason"], refusal["code"], refusal["hint"]), []).append(refusal["build"])
    lines = []
    for (reason, code, hint), builds in together.items():
        lines.append(f"not {', '.join(builds)}: {reason} ({code})")
        if hint and hint != data["hint"]:
            lines.append(f"  hint: {hint}")
    return lines


def _gates(gates: Sequence[Data]) -> list[str]:
    """Return a line for each build with every gate it met, in order."""
    lines: dict[str, list[str]] = {}
    for gate in gates:
        because = f" ({gate['reason']})" if gate["reason"] else ""
        lines.setdefault(gate["build"], []).append(f"{gate['gate']} {gate['outcome']}{because}")
    return [f"gates of {build}: {', '.join(met)}" for build, met in lines.items()]


def render_devices(data: Data) -> str:
    """Render the table of GPUs; without any, the one reason."""
    if not data["devices"]:
        return f"no GPU: {data['reason']}" if data.get("reason") else "no GPU"
    rows = []
    for device in data["devices"]:
        builds = ", ".join(f"{build['build']} ({build['how']})" for build in device["builds"])
        rows.append(
            [
                _text(device["index"]),
                _text(device["name"]),
                _text(device["uuid"]),
                _text(device["compute_capability"]),
                "unknown" if device["memory_mib"] is None else f"{device['memory_mib']} MiB",
                builds or f"none: {device['reason']}",
            ],
        )
    return table(["GPU", "name", "uuid", "capability", "memory", "builds"], rows)


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)


def render_status(data: Data) -> str:
    """Render the authoritative line, and since when that holds."""
    since = f"; since {data['since']}" if data["since"] and data["embeds"] else ""
    return f"{data['line']}{since}"


_STEPS = {"conv": "convolution", "matmul": "matrix product", "ort": "ONNX Runtime operator"}


def render_check(data: Data) -> str:
    """Render the outcome of a check, then each step."""
    head = f"check: {data['outcome']}"
    if data["kind"]:
        head += f" ({data['kind']})"
    device = data.get("device") or {}
    where = device.get("name") or {"cpu": "the CPU", "gpu": "the GPU"}.get(str(device.get("kind")))
    lines = [f"{head} on {where}" if where else head]
    steps = data.get("steps") or {}
    if right := [_STEPS.get(name, name) for name, step in steps.items() if step.get("ok")]:
        lines.append(f"  {', '.join(right)}: ok")
    for name, step in steps.items():
        if not step.get("ok"):
            detail = f" ({step['error']})" if step.get("error") else ""
            lines.append(f"  {_STEPS.get(name, name)}: failed{detail}")
    if data.get("placement"):
        lines += _placement(data["placement"])
    return "\n".join(lines)


def _placement(data: Data) -> list[str]:
    lines = [f"placement of {data['model']}:" + (f" does not run: {data['error']}" if data["error"] else "")]
    for name, share in data["providers"].items():
        time = "" if share["share_of_time"] is None else f", {share['share_of_time']:.0%} of the time"
        lines.append(f"  {name}: {share['nodes']} nodes ({share['share_of_nodes'] or 0:.0%}){time}")
    if len(data["providers"]) > 1 or not data["runs"]:
        for row in data["on_cpu"]:
            normal = "normal" if row["normal"] else "not normal"
            nodes = "1 node" if row["nodes"] == 1 else f"{row['nodes']} nodes"
            lines.append(f"  {row['op']} on the CPU, {nodes}: {normal}, {row['reason']}")
    return lines


def render_keys(data: Data, *, origins: bool = False) -> str:
    """Render `key = value` lines; an unset key shows `(not set)`."""
    return "\n".join(f"{key['key']} = {render_one(key['value'])}" + _origin(key, origins) for key in data["keys"])


def render_value(data: Data, *, origin: bool = False) -> str:
    """Render the bare value of one key, nothing when it has none."""
    key = data["keys"][0]
    return "" if key["value"] is None else render_one(key["value"]) + _origin(key, origin)


def _origin(key: Data, shown: bool) -> str:
    if not shown:
        return ""
    return f"  ({key['origin']}: {key['source']})" if key.get("source") else f"  ({key['origin']})"


def render_one(value: object) -> str:
    """Return a configuration value as a person types it: `true`, `8790`, `auto`."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def render_set(data: Data) -> str:
    """Render what was written, what that choice means on this machine, and how to apply it."""
    key = data["keys"][0]
    lines = [f"{key['key']} = {render_one(data['written'])}"]
    for choice in key["choices"]:
        if choice["value"] == data["written"]:
            text = choice.get("detail") or choice.get("reason")
            if text:
                lines.append(f"{choice['value']}: " + ("" if choice["available"] else "unavailable here: ") + text)
    if data["apply"]:
        lines.append(f"to apply: {data['apply']}")
    return "\n".join(lines)


def render_unset(data: Data) -> str:
    """Render the value that holds now that the file no longer names one; a key that nobody knows has none."""
    if not data["keys"]:
        return "removed from the file"
    key = data["keys"][0]
    lines = [f"{key['key']} = {render_one(key['value'])}  ({key['origin']})"]
    if data["apply"]:
        lines.append(f"to apply: {data['apply']}")
    return "\n".join(lines)


def render_path(data: Data) -> str:
    """Render the bare path."""
    return str(data["path"])
