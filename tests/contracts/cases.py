"""Every command in success, failure and refusal, as far as that needs no network: one case each, as data."""

from dataclasses import dataclass, field
from pathlib import Path

MACHINES = Path(__file__).resolve().parent / "machines"

TOML_BROKEN = b"[model\n"
NEWER = b'{"schema": 99}\n'


@dataclass(frozen=True, slots=True)
class Case:
    """One call: its arguments, its exit code, the code of its first error, and the shape of its data.

    `kind` is success, failure (it ran and the answer is no) or refusal (it would not run). `files` are put into the
    home first. The shape is compared when data is there; None: the data must be empty.
    """

    kind: str
    arguments: tuple[str, ...]
    code: int
    shape: str | None = None
    error: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    command: str | None = None

    @property
    def id(self) -> str:
        """What pytest shows."""
        return f"{self.kind}: {' '.join(self.arguments)}" + (f" [{self.error}]" if self.error else "")


def success(*arguments: str, shape: str, code: int = 0, **more: object) -> Case:
    """Return a case that does what was asked."""
    return Case("success", arguments, code, shape, None, **more)  # type: ignore[arg-type]


def failure(*arguments: str, code: int, error: str | None, shape: str | None = None, **more: object) -> Case:
    """Return a case that runs and fails."""
    return Case("failure", arguments, code, shape, error, **more)  # type: ignore[arg-type]


def refusal(*arguments: str, error: str = "usage", code: int = 2, **more: object) -> Case:
    """Return a case that does not run."""
    return Case("refusal", arguments, code, None, error, **more)  # type: ignore[arg-type]


BROKEN_CONFIG = {"config.toml": TOML_BROKEN}
NEWER_POINTER = {"data/current.json": NEWER}

A_MODEL = {".imprint-home": b"", "models/all-minilm-l6-v2/model.onnx": b"a model"}

CASES: tuple[Case, ...] = (
    # --- plan
    success("plan", shape="plan"),
    success("plan", "--check", shape="plan", code=100),
    success("plan", "--explain", "--device", "gpu", shape="plan"),
    success("plan", "--machine", str(MACHINES / "a4000.json"), "--device", "gpu", shape="plan"),
    success("plan", "--machine", "-", shape="plan", stdin=b"{}"),
    success("plan", "--machine", str(MACHINES / "a4000.json"), "--installed", "cpu==1.31.1", shape="plan"),
    success("plan", "--machine", str(MACHINES / "a4000.json"), "--python", "3.9", shape="plan"),
    failure("plan", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    failure("plan", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("plan", "--bogus"),
    refusal("plan", "--device", "cuda", error="invalid-value"),
    refusal("plan", "--machine", "nowhere.json"),
    refusal("plan", "--machine", "-", stdin=b"not json"),
    refusal("plan", "--machine", "-", stdin=b'{"platfrom": {}}'),
    refusal("plan", "--verdicts", "nowhere.json"),
    refusal("plan", "--installed", "cuda99"),
    refusal("plan", "--python", "three"),
    refusal("plan", "--venv", ""),
    refusal("plan", error="invalid-value", environ={"IMPRINT_DEVICE": "cuda"}),
    # --- machine, devices
    success("machine", shape="machine"),
    success("machine", "--redact", shape="machine"),
    failure("machine", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("machine", "--redacted"),
    success("devices", shape="devices"),
    failure("devices", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("devices", "extra"),
    # --- config
    success("config", "list", shape="config list"),
    success("config", "list", "--show-origin", shape="config list"),
    failure("config", "list", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("config", "list", "extra"),
    success("config", "get", "model.device", shape="config get"),
    failure("config", "get", "server.token", code=1, error="unset", shape="config get"),
    refusal("config", "get", "model.devise", error="invalid-value"),
    refusal("config", "get"),
    success("config", "set", "server.port", "9000", shape="config set"),
    success("config", "set", "model.device", "gpu", shape="config set"),
    success("config", "set", "model.gpu_device", "0", shape="config set"),
    failure("config", "set", "server.port", "9000", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("config", "set", "model.device", "cuda", error="invalid-value"),
    refusal("config", "set", "model.threads", "-1", error="invalid-value"),
    refusal("config", "set", "model.name", "nonesuch", error="invalid-value"),
    refusal("config", "set", "model.max_tokens", "100000", error="invalid-value"),
    refusal("config", "set", "model.file", "../../elsewhere", error="invalid-value"),
    refusal("config", "set", "model.device"),
    success("config", "unset", "model.device", shape="config unset", files={"config.toml": b'[model]\ndevice="gpu"\n'}),
    success("config", "unset", "model.device", shape="config unset"),
    failure("config", "unset", "model.device", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    success("config", "unset", "model.devise", shape="config unset", files={"config.toml": b"[model]\ndevise=1\n"}),
    success("config", "unset", "llm.a.url", shape="config unset", files={"config.toml": b'[llm.a]\nurl="x"\n'}),
    refusal("config", "unset", "model.devise", error="invalid-value"),
    success("config", "path", shape="config path"),
    success("config", "path", shape="config path", files=BROKEN_CONFIG),
    refusal("config", "path", "extra"),
    refusal("config", "pth", command="config pth"),
    # --- doctor
    success("doctor", "config:file", shape="doctor"),
    success("doctor", "--list", shape="doctor --list"),
    success("doctor", "--explain", "runtime-hollow", shape="doctor --explain"),
    success("doctor", "--explain", "vendor-not-nvidia", shape="doctor --explain"),
    failure("doctor", "--venv", "/nowhere/at/all", "--report", code=1, error="doctor", shape="doctor"),
    failure("doctor", code=1, error="doctor", shape="doctor"),
    failure("doctor", "--deep", "--report", code=1, error="doctor", shape="doctor"),
    failure("doctor", code=1, error="doctor", shape="doctor", files=BROKEN_CONFIG | NEWER_POINTER),
    failure(
        "doctor", "environment:names", "--strict", code=1, error="doctor", shape="doctor", environ={"IMPRINT_X": "1"}
    ),
    refusal("doctor", "config:fille"),
    refusal("doctor", "--explain", "nonsense"),
    # --- status, check
    failure("status", code=1, error="not-installed", shape="status"),
    failure("status", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    failure("status", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("status", "extra"),
    failure("check", code=1, error="not-installed", shape=None),
    failure("check", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("check", "--bogus"),
    # --- setup, bootstrap
    success("setup", "--dry-run", shape="setup"),
    success("setup", "--dry-run", "--device", "gpu", shape="setup"),
    failure("setup", "--offline", "--yes", code=5, error="network"),
    failure("setup", code=3, error="state-newer", files=NEWER_POINTER),
    failure("setup", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("setup", "--bogus"),
    refusal("setup", "--device", "cuda", error="invalid-value"),
    refusal("setup", "--find-links", "nowhere"),
    refusal("setup", "--index-url", "nonsense"),
    refusal("setup", "--wait", "long"),
    refusal("setup", "--wait", "-1"),
    refusal("setup", "--for", "nowhere.json"),
    refusal("setup", "--for", str(MACHINES / "a4000.json"), "--venv", "env"),
    failure("setup", "--venv", "nowhere", code=1, error="not-an-environment"),
    failure("setup", "--venv", "nowhere", "--dry-run", code=1, error="not-an-environment"),
    failure("bootstrap", "--offline", code=5, error="network"),
    failure("bootstrap", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("bootstrap", "--dry-run"),
    refusal("bootstrap", "--yes"),
    # --- rollback, prune
    failure("rollback", code=1, error="nothing-kept"),
    failure("rollback", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("rollback", "extra"),
    success("prune", shape="prune"),
    failure("prune", code=3, error="state-newer", files=NEWER_POINTER),
    failure("prune", "--venv", "nowhere", code=1, error="not-an-environment"),
    refusal("prune", "--wait", "long"),
    # --- bundle
    failure("bundle", "there", "--for", "linux-x86_64", "--index-url", "http://127.0.0.1:9/x", code=5, error="network"),
    failure("bundle", "there", "--for", "windows-aarch64", "--python", "3.9", code=1, error="python-no-wheel"),
    failure("bundle", "there", "--for", "linux-x86_64", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("bundle", "there"),
    refusal("bundle", "there", "--for", "amiga-m68k"),
    refusal("bundle", "there", "--for", "linux-x86_64", "--find-links", "nowhere"),
    # --- --venv
    failure("status", "--venv", "nowhere", code=1, error="not-an-environment"),
    failure("check", "--venv", "nowhere", code=1, error="not-an-environment"),
    failure("machine", "--venv", "nowhere", code=1, error="not-an-environment"),
    failure("plan", "--venv", "nowhere", code=1, error="not-an-environment"),
    refusal("plan", "--venv", "nowhere", "--machine", "-"),
    # --- embed, model
    failure("embed", "a text", "--output", "out.jsonl", code=1, error="not-installed"),
    failure("embed", "a text", "--output", "out.jsonl", code=3, error="state-newer", files=NEWER_POINTER),
    refusal("embed", "--bogus"),
    refusal("embed", "a text", "--output", "out.jsonl", "--format", "xml", error="invalid-value"),
    refusal("embed", "a text", "--output", "out.jsonl", "--model", "nonesuch", error="invalid-value"),
    success("model", "list", shape="model list"),
    failure("model", "list", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("model", "list", "extra"),
    success("model", "show", shape="model show"),
    failure("model", "show", code=3, error="state-unreadable", files=BROKEN_CONFIG),
    refusal("model", "show", "nonesuch", error="invalid-value"),
    failure("model", "path", code=1, error="model-missing"),
    refusal("model", "path", "nonesuch", error="invalid-value"),
    success("model", "remove", "all-minilm-l6-v2", shape="model remove", files=A_MODEL),
    failure("model", "remove", "all-minilm-l6-v2", code=1, error="model-missing"),
    failure("model", "remove", "all-minilm-l6-v2", code=3, error="state-unreadable", files=A_MODEL | BROKEN_CONFIG),
    refusal("model", "remove", "nonesuch", error="invalid-value"),
    refusal("model", "remove"),
    refusal("model", "fetch", "all-minilm-l6-v2", command="model fetch"),
    # --- what is no command
    refusal("nonsense", command="imprint"),
    refusal("--bogus", command="imprint"),
)
