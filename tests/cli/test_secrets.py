"""A secret on the command line: in no list of processes, in a file of its own, and moved there by what is printed."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

from contracts.runner import ROOT, run_cli


def test_a_secret_is_read_from_standard_input_and_only_get_shows_it(tmp_path: Path) -> None:
    done = run_cli(tmp_path, ["config", "set", "server.token", "-", "--json"], stdin=b"very secret\n")
    assert (done.code, "very secret" in done.out + done.err) == (0, False), done
    secrets = tmp_path / "secrets.toml"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert not (tmp_path / "config.toml").exists()
    listed = run_cli(tmp_path, ["config", "list", "--json", "--show-origin"])
    assert "very secret" not in listed.out
    assert str(secrets) in listed.out
    assert run_cli(tmp_path, ["config", "get", "server.token"]).out == "very secret\n"


def test_a_secret_in_the_open_is_told_and_what_is_printed_moves_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[server]\nport = 9000\ntoken = "very secret"\n', encoding="utf-8")
    (warning,) = run_cli(tmp_path, ["config", "list", "--json"]).document()["warnings"]
    assert warning["code"] == "secret-exposed"
    command = re.search("`([^`]+)`", warning["hint"])
    assert command is not None
    paths = f'import sys; sys.path[:0] = ["{ROOT}", "{ROOT}/cmd"]'
    start = f"{sys.executable} -P -c '{paths}; from imprint_cli.app import main; sys.exit(main())'"
    text = command[1].replace("imprint ", f"{start} ")
    subprocess.run(["sh", "-c", text], check=True, env={"IMPRINT_HOME": str(tmp_path)})
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == "[server]\nport = 9000\n"
    assert run_cli(tmp_path, ["config", "get", "server.token"]).out == "very secret\n"
    assert run_cli(tmp_path, ["config", "list", "--json"]).document()["warnings"] == []
