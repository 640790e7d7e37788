"""The general meaning of a finding code, as the tables of codes hold it."""

from __future__ import annotations

from imprint.values import Record


class Explanation(Record):
    """What a person notices (`symptom`, empty where nothing is to be noticed), what it means, and what mends it."""

    symptom: str
    means: str
    fix: str | None
