"""Gathers what doctor judges, a module for each part: never raises and changes nothing.

A fact that cannot be had is None, with its error beside it. The function for a group of facts starts its sources at
once and returns what waits for them, so that what takes long runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from imprint.context import Context
from imprint.diagnosis.facts import Embedded, Facts
from imprint.diagnosis.gathering import target
from imprint.diagnosis.gathering.home import home_facts, settings_facts
from imprint.diagnosis.gathering.planned import inputs_for, plan_facts
from imprint.diagnosis.gathering.runtime import Known, prove_here, runtime_facts
from imprint.diagnosis.gathering.sources import Look
from imprint.diagnosis.gathering.system import system_facts
from imprint.probing.host import Host
from imprint.probing.once import OnceHost
from imprint.probing.this_machine import RealHost
from imprint.situation.verdict import Prove
from imprint.state import config, last_run, verdicts


def gather(  # noqa: PLR0913 - all but the first are keywords
    context: Context,
    *,
    venv: Path | None = None,
    deep: bool = False,
    slow: frozenset[str] = frozenset(),
    host: Host | None = None,
    prove: Prove | None = None,
    embed: Callable[[], Embedded] | None = None,
) -> Facts:
    """Return everything the checks judge about the managed target, or about the environment `venv`.

    `slow` names those slow facts that are wanted (`unused`, `embedded`). `host` None: this machine. `prove` runs the
    check where none that holds is recorded, None: the check itself. `embed` makes one real embedding.
    """
    once = OnceHost(host or RealHost(context.environ), target.START_SECONDS)
    look = Look(context, once, prove or prove_here, venv=venv, deep=deep, slow=slow, embed=embed)
    ask = look.sources.ask
    configured = ask("config", lambda: config.load(context.home, context.environ, context.flags))
    named = ask("target", lambda: target.target_of(look))
    recorded = ask("verdicts", lambda: verdicts.load(context.home, look.findings))
    last = ask("last", lambda: last_run.read(context.home, look.findings))
    found, settings, _ = named(), configured(), recorded()

    machine, inside = system_facts(look, found), target.target_facts(look, found)
    system, there = machine(), inside()
    known = Known.of(found, there, system.machine)
    inputs = ask("plan", lambda: inputs_for(look, known, system.machine))()
    plan = inputs.plan if inputs is not None else None

    tried = runtime_facts(look, known, plan.device if plan is not None else None)
    proved = plan_facts(look, known, inputs, settings, last())
    home, asked = home_facts(look, settings, plan), settings_facts(context.environ, settings)
    return Facts(home(), asked, system, there, tried(), proved(), look.sources.failures)
