"""docs/troubleshooting.md is what doctor's tables say, and every code and symptom is on it."""

import re

from imprint.doctor.codes import CODES, SECTIONS
from imprint.doctor.symptoms import SYMPTOMS
from imprint_dev.troubleshooting import PAGE, render

TEXT = PAGE.read_text("utf-8")


def test_the_page_is_written_from_the_tables() -> None:
    assert render() == TEXT, "run `python -m imprint_dev troubleshooting`"


def test_every_code_is_in_one_section() -> None:
    listed = [code for section in SECTIONS.values() for code in section]
    assert sorted(listed) == sorted(CODES)
    assert set(re.findall(r"^### (\S+)$", TEXT, re.MULTILINE)) == {code for code in CODES if CODES[code].symptom}


def test_every_symptom_leads_to_codes_that_exist() -> None:
    assert [code for symptom in SYMPTOMS for code in symptom.codes if code not in CODES] == []
    reached = {code for symptom in SYMPTOMS for code in symptom.codes}
    assert len(reached) > 40


def test_links_on_the_page_lead_somewhere() -> None:
    headings = set(re.findall(r"^### (\S+)$", TEXT, re.MULTILINE))
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= headings
