"""What a survey costs and opens on this machine, measured from outside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost

CODE = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from imprint.probing.this_machine import RealHost\n"
    "from imprint.probing.survey import survey\n"
    "machine = survey(RealHost(), hardware=sys.argv[2] == 'yes')\n"
    "print(machine.nvidia.status, sorted(set(sys.argv[3:]) & set(sys.modules)))\n"
)

ROOT = str(Path(__file__).parents[2])


def test_a_survey_without_a_gpu_loads_nothing_heavy() -> None:
    """No process, no ctypes, no metadata: where there is no driver the survey is a handful of small reads."""
    heavy = ["subprocess", "ctypes", "importlib.metadata", "json.tool", "threading", "platform"]
    ran = subprocess.run(
        [sys.executable, "-I", "-c", CODE, ROOT, "no", *heavy], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "None []\n"


@pytest.mark.slow
def test_without_hardware_no_driver_file_is_opened(tmp_path: Path) -> None:
    """No open, stat or link read of a driver library, of /proc/driver or /sys/class/drm, and no child; strace tells."""
    strace = shutil.which("strace")
    assert strace, "this test needs strace: install it, or run cmd/check, which does"
    log = tmp_path / "log"
    subprocess.run(
        [strace, "-f", "-e", "trace=file,process", "-o", str(log), sys.executable, "-I", "-c", CODE, ROOT, "no"],
        check=True,
        capture_output=True,
    )
    calls = log.read_text(encoding="utf-8", errors="replace").splitlines()
    assert any("/proc/cpuinfo" in call for call in calls), "strace saw nothing of the survey"
    forbidden = re.compile(r"/proc/driver|/sys/class/drm|/sys/bus/pci|\"/dev/|libcuda|libnvidia|nvcuda|libvulkan")
    assert [call for call in calls if forbidden.search(call) and "/dev/null" not in call] == []
    assert [call for call in calls if re.search(r"\b(clone|clone3|fork|vfork)\(", call)] == []


def test_a_real_interpreter_describes_itself_the_same_from_outside(tmp_path: Path) -> None:
    """The child's answer about this interpreter is the one it gives in this process, through a link as well."""
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    here = survey(RealHost(), hardware=False)
    for path in (Path(sys.executable), link):
        there = survey(RealHost(), python=path, hardware=False)
        assert (there.python, there.platform) == (here.python, here.platform)
