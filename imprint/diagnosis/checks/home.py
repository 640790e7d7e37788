"""The home and its state files, the configuration, and whether the system shows what is read from it. Pure."""

from __future__ import annotations

from imprint.diagnosis.checking import check
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, WARNING, Observation, ok
from imprint.errors import ImprintError, InvalidValueError, StateNewerError
from imprint.words import FindingStatus


@check("state:files", "the home folder and the state files in it")
def state_files(facts: Facts) -> Observation | list[Observation]:
    """Judge the home folder and the state files in it."""
    found: list[Observation] = []
    if facts.home.error:
        # Where a runtime is set up, embedding needs to write nothing: an image, or a service that shares a home.
        status: FindingStatus = WARNING if facts.target.provisioned else ERROR
        found.append(Observation("home-not-writable", status, facts.home.error))
    told: set[str] = set()
    for name in ("verdicts", "target", "last", "receipt", "interrupted", "seen"):
        error = facts.failures.get(name)
        if error is not None and error.specific_code.startswith("state-") and error.message not in told:
            told.add(error.message)
            code = "state-newer" if isinstance(error, StateNewerError) else "state-unreadable"
            found.append(Observation(code, ERROR, error.message, told=error.hint))
    found += [Observation(aside.code, WARNING, aside.message, told=aside.hint) for aside in facts.home.asides]
    return found or ok(f"the state files in {facts.home.path} can be used")


@check("config:file", "the configuration file and the variables that override it")
def config_file(facts: Facts) -> Observation | list[Observation]:
    """Judge the configuration: file, keys, values, and environment variables that override them."""
    error = facts.failures.get("config")
    if error is not None:
        return Observation(config_code(error), ERROR, error.message, told=error.hint)
    return [
        Observation("secret-exposed", WARNING, f"config.toml holds {name}", words={"key": name})
        for name in facts.settings.exposed
    ] or ok(f"the configuration is valid; model.device is {facts.settings.device_asked}")


def config_code(error: ImprintError) -> str:
    """Return the finding code of an error that reading the configuration raised."""
    if not isinstance(error, InvalidValueError):
        return "process-limit" if error.specific_code == "process-limit" else "config-unreadable"
    return "environment-invalid" if error.message.startswith("IMPRINT_") else "config-invalid"


@check("environment:names", "environment variables that begin with IMPRINT_ but that Imprint does not know")
def environment_names(facts: Facts) -> Observation | list[Observation]:
    """Judge the names of environment variables that begin with IMPRINT_."""
    return [
        Observation(
            "unknown-variable",
            WARNING,
            f"{name} is set, but Imprint does not know it",
            words={"near": f": did you mean {near}?" if near else ""},
        )
        for name, near in facts.settings.unknown_variables
    ] or ok("no unknown IMPRINT_ variable is set")


@check("system:access", "whether Imprint can read what it needs from the system, and start processes")
def system(facts: Facts) -> Observation:
    """Judge whether the system shows what is read from it."""
    limit = next((error for error in facts.failures.values() if error.specific_code == "process-limit"), None)
    if limit is not None:
        return Observation("process-limit", ERROR, limit.message, told=limit.hint)
    if not facts.system.proc:
        return Observation("no-proc", WARNING, "/proc is not mounted here")
    return ok("Imprint can read the processor, the limits and the devices")
