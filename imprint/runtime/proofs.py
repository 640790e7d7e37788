"""Where the newest proof of a target is kept: in a generation's manifest, or beside the receipt of an environment."""

from __future__ import annotations

from imprint.paths import Home
from imprint.runtime.check.proof import Proof, parse_proof
from imprint.runtime.foreign import journal
from imprint.runtime.target import Target
from imprint.state.findings import UNHEARD, Findings


def read(home: Home, target: Target, findings: Findings = UNHEARD) -> Proof | None:
    """Return the newest proof that is kept of a target, holding or not; None where there is none.

    Raises StateNewerError and StateError as `files.read_json` does.
    """
    if target.managed:
        return parse_proof(target.manifest.check if target.manifest is not None else None)
    return parse_proof(journal.read_proof(journal.store_of(home, target.prefix), findings))


def write(home: Home, target: Target, proof: Proof) -> None:
    """Keep the proof of somebody's own environment; that of a generation is in its manifest. Holds the mutex.

    Raises StateNewerError for one that a newer Imprint wrote, which stays.
    """
    store = journal.store_of(home, target.prefix)
    journal.read_proof(store)
    journal.write_proof(store, proof.to_json())
