"""The configuration: precedence with origins, clear errors, and a writer that loses nothing."""

import os
import re
import shlex
import stat
import threading
from pathlib import Path

import pytest

from imprint.errors import ImprintError, InvalidValueError, StateError
from imprint.paths import Home
from imprint.state import config, config_file
from imprint.state.settings import KEYS, key_of, unknown_variables, variables_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home whose path has a space and a letter outside ASCII."""
    root = tmp_path / "my hömé"
    root.mkdir()
    return Home(root)


def write(home: Home, text: str) -> None:
    home.config.write_text(text, encoding="utf-8")


def test_every_key_has_its_default_and_says_so(home: Home) -> None:
    loaded = config.load(home, {}, {})
    assert list(loaded.settings) == list(KEYS)
    assert all(setting.origin == "default" for setting in loaded.settings.values())
    assert loaded.get("model.device").value == "cpu"
    assert loaded.get("model.gpu_device").value == "auto"
    assert loaded.get("runtime.portable_gpu").value is True


def test_the_winner_is_flag_then_env_then_file_then_default(home: Home) -> None:
    write(home, '[model]\ndevice = "auto"\n')
    environ = {"IMPRINT_DEVICE": "gpu"}
    assert config.load(home, environ, {"model.device": "cpu"}).get("model.device").origin == "flag"
    assert config.load(home, environ, {}).get("model.device") == config.Setting(
        "model.device", "gpu", "cpu", "env", "IMPRINT_DEVICE"
    )
    assert config.load(home, {}, {}).get("model.device") == config.Setting(
        "model.device", "auto", "cpu", "file", str(home.config)
    )


def test_each_key_is_read_from_its_long_name_too(home: Home) -> None:
    assert variables_of("model.device") == ("IMPRINT_DEVICE", "IMPRINT_MODEL_DEVICE")
    loaded = config.load(home, {"IMPRINT_MODEL_GPU_DEVICE": "GPU-1", "IMPRINT_MODEL_MAX_TOKENS": "64"}, {})
    assert loaded.get("model.gpu_device").value == "GPU-1"
    assert loaded.get("model.max_tokens").value == 64


def test_short_and_long_name_must_agree(home: Home) -> None:
    same = {"IMPRINT_DEVICE": "gpu", "IMPRINT_MODEL_DEVICE": "gpu"}
    assert config.load(home, same, {}).get("model.device").value == "gpu"
    with pytest.raises(InvalidValueError, match="IMPRINT_DEVICE and IMPRINT_MODEL_DEVICE"):
        config.load(home, same | {"IMPRINT_DEVICE": "cpu"}, {})


def test_an_empty_variable_sets_nothing(home: Home) -> None:
    assert config.load(home, {"IMPRINT_DEVICE": ""}, {}).get("model.device").origin == "default"


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("model.device", "cuda", "cpu, gpu or auto"),
        ("model.device", "GPU", "cpu, gpu or auto"),
        ("model.max_tokens", "0", "whole number"),
        ("model.max_tokens", "1_000", "whole number"),
        ("model.max_tokens", "٣", "whole number"),
        ("server.port", "65536", "65535"),
        ("runtime.portable_gpu", "maybe", "true or false"),
        ("model.gpu_device", "0\n1", "line break"),
        ("model.gpu_device", "-1", "an index like 0"),
        ("model.gpu_device", "first", "an index like 0"),
        ("server.token", "a\0b", "line break"),
        ("server.token", 'a"b\n', "valid: any text in one line"),
        ("model.name", " ", "imprint model list"),
        ("model.threads", "-1", "4096"),
    ],
)
def test_a_bad_value_names_its_source_and_what_is_valid(home: Home, key: str, value: str, named: str) -> None:
    variable = variables_of(key)[0]
    with pytest.raises(InvalidValueError) as raised:
        config.load(home, {variable: value}, {})
    assert variable in raised.value.message
    assert named in f"{raised.value.message} {raised.value.hint}"
    with pytest.raises(InvalidValueError) as refused:
        config_file.set_value(home, key, value)
    assert refused.value.message.count(f"`{value}`") <= 1
    assert not home.config.exists()


@pytest.mark.parametrize(
    ("key", "option"),
    [("model.name", "--model"), ("model.device", "--device"), ("model.gpu_device", "--gpu-device")],
)
def test_a_bad_value_of_an_option_names_the_option(home: Home, key: str, option: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{option}: "):
        config.load(home, {}, {key: "\x1b[31m"})


@pytest.mark.parametrize("line", ["device = true", "max_tokens = 1.5", "max_tokens = true", "name = ['a']"])
def test_a_wrong_type_in_the_file_is_an_error_that_names_it(home: Home, line: str) -> None:
    write(home, f"[model]\n{line}\n")
    with pytest.raises(InvalidValueError, match=r"config\.toml"):
        config.load(home, {}, {})


def test_an_unknown_key_is_an_error_with_a_suggestion(home: Home) -> None:
    with pytest.raises(InvalidValueError) as raised:
        key_of("model.devise")
    assert "model.device" in str(raised.value.hint)
    write(home, '[model]\ndevise = "gpu"\n')
    with pytest.raises(InvalidValueError, match=r"config\.toml"):
        config.load(home, {}, {})
    assert config_file.unset_value(home, "model.devise")
    assert config.load(home, {}, {}).get("model.device").value == "cpu"
    with pytest.raises(InvalidValueError):
        config_file.unset_value(home, "model.devise")


@pytest.mark.parametrize(
    "text",
    [
        '[model]\n"de vice" = "x"\n',
        '"a.b" = 1\n',
        '[model]\n"x.y" = 1\ndevice = "gpu"\n',
        '[model]\n"it\'s" = 1\n',
        '["a.b".c]\nd = 1\n',
        '"$HOME" = 1\n',
        "-x = 1\n",
        "a.b.c = 1\n[model]\n",
    ],
)
def test_the_command_that_removes_an_unknown_key_works_as_it_is_shown(home: Home, text: str) -> None:
    write(home, text)
    with pytest.raises(InvalidValueError) as raised:
        config.load(home, {}, {})
    hint = str(raised.value.hint)
    words = shlex.split(re.findall("`(imprint config unset .*)` removes it", hint)[0])[3:]
    assert words[:1] == ["--"] or not words[0].startswith("-")
    (name,) = words[1:] if words[:1] == ["--"] else words
    assert config_file.unset_value(home, name)
    config.load(home, {}, {})
    assert ("device" in home.config.read_text("utf-8")) == ("device =" in text)


def test_a_folder_in_the_place_of_the_file_is_named_with_what_to_do(home: Home) -> None:
    home.config.mkdir(parents=True)
    for action in (lambda: config.load(home, {}, {}), lambda: config_file.set_value(home, "model.device", "gpu")):
        with pytest.raises(StateError, match="is not a regular file") as raised:
            action()
        assert raised.value.hint == "move it away; nothing was changed"


@pytest.mark.parametrize(
    "content", [b"[model\n", b"a = 1\nb = \xff\n", b"\0\1\2", b"[" * 100_000, b"x" * (1 << 21), b"a = 1\na = 2\n"]
)
def test_a_broken_file_is_reported_and_never_touched(home: Home, content: bytes) -> None:
    home.config.write_bytes(content)
    for action in (
        lambda: config.load(home, {}, {}),
        lambda: config_file.set_value(home, "model.device", "gpu"),
        lambda: config_file.unset_value(home, "model.device"),
    ):
        with pytest.raises(StateError, match=r"config\.toml"):
            action()
    assert home.config.read_bytes() == content
    assert {path.name for path in home.root.iterdir() if path.is_file()} == {"config.toml", home.marker.name}


def test_the_line_of_the_mistake_is_named(home: Home) -> None:
    write(home, '[model]\ndevice = "gpu"\nname = \n')
    with pytest.raises(StateError, match="line 3"):
        config.load(home, {}, {})


def test_a_folder_in_place_of_the_file_is_a_clear_error(home: Home) -> None:
    home.config.mkdir()
    with pytest.raises(StateError, match=r"config\.toml"):
        config.load(home, {}, {})


def test_writing_keeps_comments_order_and_everything_else(home: Home) -> None:
    write(home, '# mine\n[server]  # keep\nport = 9000\n\n[model]\n# why\ndevice = "cpu" # now\n')
    assert config_file.set_value(home, "model.device", "gpu") == "gpu"
    config_file.set_value(home, "runtime.portable_gpu", "no")
    text = home.config.read_text(encoding="utf-8")
    assert text.startswith('# mine\n[server]  # keep\nport = 9000\n\n[model]\n# why\ndevice = "gpu" # now\n')
    assert config.load(home, {}, {}).get("runtime.portable_gpu").value is False
    assert config_file.unset_value(home, "model.device")
    assert "# why" in home.config.read_text(encoding="utf-8")
    assert not config_file.unset_value(home, "model.device")


def test_a_table_is_not_overwritten_by_a_value(home: Home) -> None:
    config_file.set_value(home, "llm.a.host", "x")
    with pytest.raises(StateError, match="table"):
        config_file.set_value(home, "llm.a", "y")
    config_file.set_value(home, "llm.b", "y")
    with pytest.raises(StateError, match="value"):
        config_file.set_value(home, "llm.b.host", "x")
    loaded = config.load(home, {"IMPRINT_LLM_C": "z"}, {})
    assert (loaded.get("llm.a.host").value, loaded.get("llm.b").value, loaded.get("llm.c").value) == ("x", "y", "z")


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_the_mode_follows_the_umask_and_a_person_may_choose_another(home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        config_file.set_value(home, "server.port", "9999")
        assert stat.S_IMODE(home.config.stat().st_mode) == 0o666 & ~umask
        home.config.chmod(0o640)
        config_file.set_value(home, "server.port", "9998")
        assert stat.S_IMODE(home.config.stat().st_mode) == 0o640
        config_file.set_value(home, "server.token", "secret")
        config_file.set_value(home, "llm.there.api_key", "secret")
        home.secrets.chmod(0o644)
        config_file.set_value(home, "server.token", "secret too")
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600
    assert "secret" not in home.config.read_text(encoding="utf-8")
    loaded = config.load(home, {}, {})
    assert (loaded.get("server.token").value, loaded.get("server.token").source) == ("secret too", str(home.secrets))
    assert loaded.get("llm.there.api_key").value == "secret"
    assert config_file.unset_value(home, "server.token")
    assert config.load(home, {}, {}).get("server.token").value is None


def test_a_secret_in_the_open_is_read_told_and_moved_when_it_is_set(home: Home) -> None:
    write(home, '# mine\n[server]\nport = 9000\ntoken = "old"\n')
    loaded = config.load(home, {}, {})
    assert (loaded.get("server.token").value, loaded.exposed) == ("old", ("server.token",))
    config_file.set_value(home, "server.token", "new")
    assert home.config.read_text(encoding="utf-8") == "# mine\n[server]\nport = 9000\n"
    loaded = config.load(home, {}, {})
    assert (loaded.get("server.token").value, loaded.exposed) == ("new", ())


def test_only_secrets_belong_into_their_file(home: Home) -> None:
    home.secrets.write_text('[model]\ndevice = "gpu"\n', encoding="utf-8")
    with pytest.raises(InvalidValueError, match=r"secrets\.toml"):
        config.load(home, {}, {})


def test_damaged_secrets_stop_only_what_asks_for_one(home: Home) -> None:
    home.secrets.write_text("[server\n", encoding="utf-8")
    loaded = config.load(home, {}, {})
    assert loaded.get("model.device").value == "cpu"
    with pytest.raises(StateError, match=r"secrets\.toml"):
        loaded.get("server.token")
    assert config.load(home, {"IMPRINT_SERVER_TOKEN": "x"}, {}).get("server.token").value == "x"


def test_a_linked_file_stays_a_link(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n", encoding="utf-8")
    home.config.symlink_to(real)
    config_file.set_value(home, "model.device", "gpu")
    assert home.config.is_symlink()
    assert "gpu" in real.read_text(encoding="utf-8")


def test_writers_at_the_same_time_lose_nothing(home: Home) -> None:
    names = [f"llm.k{number}" for number in range(16)]
    threads = [threading.Thread(target=config_file.set_value, args=(home, name, "v")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded = config.load(home, {}, {})
    assert all(loaded.get(name).value == "v" for name in names)


def test_no_home_yet_is_made_and_an_impossible_one_is_a_clear_error(tmp_path: Path) -> None:
    config_file.set_value(Home(tmp_path / "new" / "home"), "model.device", "gpu")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ImprintError):
        config_file.set_value(Home(tmp_path / "file" / "home"), "model.device", "gpu")


def test_unknown_variables_are_found_with_the_nearest_name() -> None:
    names = [*os.environ, "IMPRINT_DEVISE", "IMPRINT_LLM_X", "IMPRINT_HOME", "IMPRINT_MODEL_DEVICE", "IMPRINTX"]
    assert unknown_variables(name for name in names if name not in os.environ) == [("IMPRINT_DEVISE", "IMPRINT_DEVICE")]
