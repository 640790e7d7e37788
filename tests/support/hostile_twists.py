"""What is done to environments that no installer would do; each function does one such thing and says what."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from imprint.runtime.foreign import journal
from support.handmade import SERIES
from support.hostile import Mess

FOLDER_ROWS = (
    *(".", "..", "./", "./.", "own", "own/", "own/..", "own/../..", "neighbour", "neighbour/", "neighbour/empty"),
    *("../../..", "../../../bin", "../../../share/empty", "../site-packages", "/", "//", "userlib", "nvidia", "numpy"),
    *("onnxruntime", "onnxruntime/", "onnxruntime/..", "onnxruntime/capi", "onnxruntime/capi/../..", "../../../.."),
    *("../../../../neighbour", "../../../../neighbour/lib/empty", "../../../../empty", "../../../../../x/empty"),
)
FILE_ROWS = (
    *("../../../pyvenv.cfg", "../../../bin/activate", "../../../bin/python", "../../../bin/python3", "../../../lib64"),
    *("../../../../neighbour/lib/file.py", "../../../../../x/file.txt", "own/data.txt", "own/__init__.py"),
    *("own/../own/data.txt", "./own/data.txt", "userlib/__init__.py", "onnxruntime/../own/data.txt", "own//data.txt"),
)
ODD_ROWS: tuple[str | bytes, ...] = (
    *("", ",,,,", "a\0b", "x" * 5000, "/".join("d" * 200 for _ in range(30)), "~", "$HOME", "-rf", "--", "*", "?"),
    *('"quoted, name.py",,', '"two\nlines.py",,', '"never closed', "onnxruntime\\part1.py", "C:\\Windows", "%2e%2e/x"),
    *("onnxruntime/./part3.py", "onnxruntime//part4.py", "onnxruntime/part1.py,md5=x,abc", "onnxruntime/part2.py,,-1"),
    *(
        f"onnxruntime/part5.py,,{10**30}",
        "onnxruntime/part6.py/below",
        "onnxruntime/part7.py/..",
        "loop/x",
        "\u202e.py",
    ),
    *(b"onnxruntime/caf\xe9.py", b"\xff\xfe", b"\xef\xbb\xbfonnxruntime/part8.py,,", b"onnxruntime/part9.py,,\r"),
)
LINK_ROWS = ("link/..", "link/../..", "link/sub", "link/sub/f.txt", "link/file.txt", "link/.", "link/sub/../file.txt")

HOSTILE_NAMES = (
    *(
        "--cache-dir=/x",
        "-r",
        "--all",
        "onnxruntime-y @ file:///z",
        "https://host.invalid/x",
        "",
        " ",
        "..",
        "../..",
        "/",
    ),
    *("onnxruntime\x00gpu", "onnxruntime[gpu]", "onnxruntime==9", "ONNXRUNTIME.GPU", "onnxruntimé", "a" * 3000),
    *("nvidia-cublas", "numpy", "\x1b[31mred", "onnxruntime_gpu", "pip", "imprint"),
)
HOSTILE_VERSIONS = ("", "1.0; rm", "not a version", "9" * 5000, "1!2.0+local.1", "\x1b[2J", "..", "1.31.1 ", "v1.31.1")


def rows(mess: Mess) -> str | None:
    """Add rows that name folders, files of others, or nonsense."""
    info = mess.any_of_ours()
    if info is None or not (mess.made.packages / info / "RECORD").is_file():
        return None
    pool = mess.chance.choice([FOLDER_ROWS, FOLDER_ROWS, FILE_ROWS, ODD_ROWS, LINK_ROWS])
    if pool is LINK_ROWS:
        _link(mess, "link", mess.made.scratch / "x" / "y")
    if pool is ODD_ROWS:
        _link(mess, "loop", Path("loop"))
    chosen = mess.chance.sample(pool, mess.chance.choice([1, 1, 2, 4]))
    absolute = [str(mess.made.scratch / "x" / "file.txt"), str(mess.made.scratch / "x"), str(mess.made.prefix)]
    chosen += mess.chance.sample(absolute, mess.chance.choice([0, 0, 0, 1]))
    mess.made.add_rows_to(info, *(row if _has_commas(row) else _with_commas(row) for row in chosen))
    return f"{info} {[row[:60] for row in chosen]}"


def many_rows(mess: Mess) -> str | None:
    """Add more rows than any wheel has."""
    info = mess.any_of_ours()
    if info is None or not (mess.made.packages / info / "RECORD").is_file():
        return None
    mess.made.add_rows_to(info, *(f"onnxruntime/none/{number}.py,,10" for number in range(20_000)))
    return info


def odd_file(mess: Mess) -> str | None:
    """Replace a file of a distribution's metadata by something that is no such file."""
    name = mess.chance.choice(["RECORD", "RECORD", "METADATA", "INSTALLER", "WHEEL"])
    info = mess.any_of_ours()
    if mess.chance.random() < 0.25:
        info = mess.chance.choice([path.name for path in sorted(mess.made.packages.glob("*.dist-info"))])
    if info is None:
        return None
    path = mess.made.packages / info / name
    if not path.parent.is_dir() or path.parent.is_symlink():
        return None
    kind = mess.chance.choice(sorted(ODD_FILES))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    ODD_FILES[kind](mess, path)
    if name == "RECORD" and info in mess.protected:
        # Nobody can tell any more that a file so far from its distribution is the owner's.
        mess.protected -= {known for known in mess.protected if known.startswith(("onnxruntime/", "nvidia/"))}
    return f"{info}/{name} is {kind}"


def _sparse(_mess: Mess, path: Path) -> None:
    path.touch()
    os.truncate(path, 10**9)


def _unreadable(_mess: Mess, path: Path) -> None:
    path.write_text("onnxruntime/part1.py,,\n")
    path.chmod(0)


ODD_FILES: dict[str, Callable[[Mess, Path], object]] = {
    "gone": lambda _mess, _path: None,
    "a FIFO": lambda _mess, path: os.mkfifo(path),
    "a folder": lambda _mess, path: path.mkdir(),
    "a dangling link": lambda _mess, path: path.symlink_to("nowhere"),
    "a link to itself": lambda _mess, path: path.symlink_to(path.name),
    "a link to /dev/zero": lambda _mess, path: path.symlink_to("/dev/zero"),
    "a link outside": lambda mess, path: path.symlink_to(mess.made.scratch / "x" / "file.txt"),
    "1 GB of nothing": _sparse,
    "empty": lambda _mess, path: path.touch(),
    "zeros": lambda _mess, path: path.write_bytes(bytes(4096)),
    "not UTF-8": lambda _mess, path: path.write_bytes(b"onnxruntime/\xe9.py,,\nName: \xff\xfe\n"),
    "unreadable": _unreadable,
}


def odd_line_ends(mess: Mess) -> str | None:
    """Write a RECORD with CRLF, a byte order mark, quotes everywhere, or no last line end."""
    info = mess.any_of_ours()
    path = mess.made.packages / (info or "") / "RECORD"
    if info is None or path.is_symlink() or not path.is_file() or path.stat().st_size > 10**8:
        return None
    content = path.read_bytes()
    kind = mess.chance.choice(["CRLF", "BOM", "quoted", "cut", "backslashes", "dots", "upper case"])
    changed = {
        "CRLF": lambda: content.replace(b"\n", b"\r\n"),
        "BOM": lambda: b"\xef\xbb\xbf" + content,
        "quoted": lambda: b"".join(b'"' + line.replace(b",", b'","') + b'"\n' for line in content.splitlines()),
        "cut": lambda: content[: len(content) // 2],
        "backslashes": lambda: content.replace(b"/", b"\\"),
        "dots": lambda: b"".join(b"./" + line + b"\n" for line in content.splitlines()),
        "upper case": content.upper,
    }[kind]()
    path.write_bytes(changed)
    return f"{info}/RECORD {kind}"


def odd_header(mess: Mess) -> str | None:
    """Give a distribution a name or a version that is an option, an address, empty, or somebody else's."""
    info = mess.any_of_ours()
    path = mess.made.packages / (info or "") / "METADATA"
    if info is None or path.is_symlink() or not path.is_file() or path.stat().st_size > 10**8:
        return None
    name, value = mess.chance.choice(
        [*(("Name", name) for name in HOSTILE_NAMES), *(("Version", version) for version in HOSTILE_VERSIONS)]
    )
    lines = path.read_text(errors="replace").splitlines()
    path.write_text("".join(f"{name}: {value}\n" if line.startswith(f"{name}:") else f"{line}\n" for line in lines))
    return f"{info} {name}: {value[:60]!r}"


def more_metadata(mess: Mess) -> str | None:
    """Add a second dist-info, one in odd case, one that is a file, one without name or version."""
    source = mess.any_of_ours()
    if source is None:
        return None
    name = mess.chance.choice(
        [
            *(
                "onnxruntime_gpu-1.20.0.dist-info",
                "ONNXRuntime_GPU-1.31.1.dist-info",
                "onnxruntime.gpu-1.31.1.dist-info",
            ),
            *("onnxruntime.dist-info", ".dist-info", "-.dist-info", "onnxruntime_gpu-.dist-info", "a-b-c.dist-info"),
            *("onnxruntime-1.31.1.DIST-INFO", "onnx runtime-1.0.dist-info", "onnxruntime_gpu-1.31.1.dist-info.bak"),
        ]
    )
    path = mess.made.packages / name
    if path.exists() or path.is_symlink():
        return None
    kind = mess.chance.choice(
        ["copy", "copy", "folder", "file", "link inside", "link outside", "dangling link", "FIFO"]
    )
    if kind == "copy" and not _copy_small(mess.made.packages / source, path):
        return None
    outside = mess.made.scratch / "x" / "info"
    if kind == "link outside" and not (outside.exists() or _copy_small(mess.made.packages / source, outside)):
        return None
    if kind in {"folder", "copy"}:
        path.mkdir(exist_ok=True)
    elif kind == "file":
        path.write_text("Name: onnxruntime\n")
    elif kind == "FIFO":
        os.mkfifo(path)
    else:
        targets: dict[str, str | Path] = {"link inside": source, "link outside": outside, "dangling link": "nowhere"}
        path.symlink_to(targets[kind])
    return f"{name} is a {kind} of {source}"


def egg(mess: Mess) -> str | None:
    """Add metadata of an old kind, whose top-level folder is somebody else's."""
    packages = mess.made.packages
    name = mess.chance.choice(["onnxruntime_gpu", "onnxruntime", "nvidia_cublas", "numpy", "onnxruntime-gpu"])
    kind = mess.chance.choice(["file", "folder", "folder", "link", "egg-link", "egg"])
    path = packages / f"{name}-1.20.0-py3.11.{'egg-info' if kind in {'file', 'folder', 'link'} else kind}"
    if path.exists() or path.is_symlink():
        return None
    header = f"Metadata-Version: 1.0\nName: {name}\nVersion: 1.20.0\n"
    if kind == "file":
        path.write_text(header)
    elif kind == "link":
        path.symlink_to(mess.made.scratch / "x" / "y")
    elif kind == "egg-link":
        path.write_text(f"{mess.made.owner / 'src'}\n.\n")
    else:
        folder = path / "EGG-INFO" if kind == "egg" else path
        folder.mkdir(parents=True)
        (folder / "PKG-INFO").write_text(header)
        (folder / "top_level.txt").write_text("own\nneighbour\nonnxruntime\n..\n../../../bin\n")
        (folder / "installed-files.txt").write_text("../own/data.txt\n../neighbour\n../..\n../../../../bin\n")
        (folder / "SOURCES.txt").write_text("own/__init__.py\n")
    mess.protected.add(path.name)
    return f"{path.name} is a {kind}"


def link_for_folder(mess: Mess) -> str | None:
    """Replace a folder of packages by a link: to a checkout, a shared folder, nothing, or another one inside."""
    packages, scratch = mess.made.packages, mess.made.scratch
    name = mess.chance.choice(
        ["onnxruntime", "onnxruntime", "onnxruntime/capi", "nvidia", "nvidia/cu13", "numpy", "packaging", "tokenizers"]
    )
    target = mess.chance.choice(
        [mess.made.owner / "src" / "onnxruntime", scratch / "shared" / name, Path("nowhere"), Path("own")]
    )
    path = packages / name
    if not path.parent.resolve().is_relative_to(packages.resolve()):
        return None
    if path.is_dir() and not path.is_symlink():
        if mess.chance.random() < 0.4:
            # What was installed lies where the link leads, as with a shared disk.
            target = scratch / "x" / f"moved {name.replace('/', ' ')}"
            if target.exists():
                return None
            shutil.copytree(path, target, symlinks=True)
        shutil.rmtree(path)
        mess.protected -= {known for known in mess.protected if known.startswith(f"{name}/")}
    return _link(mess, name, target)


def link_for_file(mess: Mess) -> str | None:
    """Replace a file, or put beside files, a link that leads to a canary, round in circles, or nowhere."""
    name = mess.chance.choice(
        [
            *("onnxruntime/part3.py", "onnxruntime/__init__.py", "onnxruntime/capi/library.so", "onnxruntime/new.py"),
            *("nvidia/cu13/lib/libcublas.so", "numpy/data.bin", "packaging/__init__.py", "onnxruntime/circle"),
        ]
    )
    targets = [mess.made.scratch / "x" / "file.txt", mess.made.scratch / "x" / "y", Path("circle"), Path("nowhere")]
    target = mess.chance.choice([*targets, Path("../own/data.txt"), Path("part4.py"), Path("/dev/zero"), Path()])
    path = mess.made.packages / name
    if not path.parent.is_dir() or not path.parent.resolve().is_relative_to(mess.made.packages.resolve()):
        return None
    if path.is_dir() and not path.is_symlink():
        return None
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return f"{name} -> {str(target).replace(str(mess.made.scratch), '')}"


def unclaimed(mess: Mess) -> str | None:
    """Put files of the owner's, which nothing records, where a distribution of ours would come to lie."""
    path = mess.chance.choice(
        [
            *("packaging/__init__.py", "packaging/notes.txt", "flatbuffers/__init__.py", "protobuf/data.bin"),
            *("nvidia/cu13/lib/libcublas.so", "nvidia/own.txt", "nvidia/cudnn/lib/own.so", "numpy/own.txt"),
            *("tokenizers/__init__.py", "onnxruntime_gpu.libs/own.so", "onnxruntime.py", "nvidia_cublas.py"),
        ]
    )
    if (mess.made.packages / path).exists():
        return None
    mess.plant(path)
    return path


def rests(mess: Mess) -> str | None:
    """Leave what a killed pip leaves."""
    for name in ("~nnxruntime", "~nnxruntime-1.22.0.dist-info", "~-nxruntime"):
        (mess.made.packages / name).mkdir(exist_ok=True)
        (mess.made.packages / name / "file.py").write_text("old\n")
    return "of a killed pip"


def odd_mode(mess: Mess) -> str | None:
    """Give a file or a folder a mode that is in the way of whoever is not the superuser."""
    depth = mess.chance.choice(
        ["*", "*/*", "*/*", "onnxruntime*/*", "nvidia/*/*", "onnxruntime/capi/*", "../site-packages"]
    )
    paths = [path for path in sorted(mess.made.packages.glob(depth)) if not path.is_symlink()]
    if not paths:
        return None
    path = mess.chance.choice(paths)
    mode = mess.chance.choice([0o000, 0o444, 0o555, 0o1777, 0o4755, 0o666])
    path.chmod(mode)
    return f"{path.relative_to(mess.made.packages.parent)} {mode:o}"


def no_build(mess: Mess) -> str | None:
    """Add a distribution that is named like a build and is none."""
    kind = mess.chance.choice(["editable", "stubs", "data", "plug-in", "plug-in", "empty", "source"])
    name = f"onnxruntime-{kind.replace('plug-in', 'ep-own')}"
    module = name.replace("-", "_")
    files = {
        "editable": {f"__editable__.{module}-1.0.pth": f"{mess.made.owner / 'src'}\n"},
        "stubs": {"onnxruntime-stubs/__init__.pyi": "x: int\n"},
        "data": {"onnxruntime_data/weights.bin": "w\n"},
        "plug-in": {f"{module}/__init__.py": "x = 1\n", "onnxruntime_own.libs/own.so": "x\n"},
        "empty": {},
        "source": {f"{module}.py": "x = 1\n"},
    }[kind]
    if (mess.made.packages / f"{module}-1.0.dist-info").exists():
        return None
    mess.made.own(name, files)
    mess.protect_recorded(module)
    return name


def plug_in_inside(mess: Mess) -> str | None:
    """Let a distribution of the owner's record a file in the folder of ONNX Runtime, in an odd spelling."""
    folder = mess.made.packages / "onnxruntime"
    if folder.is_symlink() or not folder.is_dir():
        return None
    name = f"plug{len(mess.protected)}"
    path = f"onnxruntime/{name}.py"
    spelling = mess.chance.choice(
        [
            *(path, f"./{path}", f"onnxruntime//{name}.py", f"own/../{path}", f"{mess.made.packages / path}"),
            *(f"../../../lib/{SERIES}/site-packages/{path}", f"../../../lib64/{SERIES}/site-packages/{path}"),
        ]
    )
    info = mess.made.own(name, {f"{name}_more/__init__.py": ""}, [f"{spelling},,"])
    mess.plant(path)
    mess.protected |= {f"{name}_more/__init__.py", info.name, f"{info.name}/RECORD"}
    return f"{name} records `{spelling.replace(str(mess.made.scratch), '')}`"


def shared_file(mess: Mess) -> str | None:
    """Let one of ours record a file or a link that the owner's distribution records too."""
    info = mess.any_of_ours()
    if info is None or not (mess.made.packages / info / "RECORD").is_file():
        return None
    name = f"both{len(mess.protected)}"
    kind = mess.chance.choice(["file", "relative link", "absolute link", "dangling link", "link outside"])
    path = f"{mess.chance.choice([name, 'nvidia', 'own'])}/{name}.so"
    target = {
        "relative link": f"../{name}_more/__init__.py",
        "absolute link": str(mess.made.packages / f"{name}_more/__init__.py"),
        "dangling link": "nowhere",
        "link outside": str(mess.made.scratch / "x" / "file.txt"),
    }
    full = mess.made.packages / path
    if not full.parent.resolve().is_relative_to(mess.made.packages.resolve()):
        return None
    mess.made.own(name, {f"{name}_more/__init__.py": "x = 1\n"}, [f"{path},,"])
    full.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        full.write_text("shared\n")
    else:
        full.symlink_to(target[kind])
    mess.protect_recorded(name)
    mess.made.add_rows_to(info, f"{path},,")
    return f"{path}, a {kind}, is {info}'s too"


def odd_place(mess: Mess) -> str | None:
    """Change the environment itself: its marker, its folder of 64-bit libraries, its interpreter's place."""
    prefix = mess.made.prefix
    kind = mess.chance.choice(["empty marker", "no lib64", "lib64 is a folder", "python by a script", "two series"])
    if kind == "empty marker":
        (prefix / "pyvenv.cfg").write_text("")
    elif kind in {"no lib64", "lib64 is a folder"} and (prefix / "lib64").is_symlink():
        (prefix / "lib64").unlink()
        if kind == "lib64 is a folder":
            (prefix / "lib64" / "own").mkdir(parents=True)
    elif kind == "python by a script":
        python = prefix / "bin" / "python"
        real = os.path.realpath(python)
        python.unlink()
        python.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n')
        python.chmod(0o755)
    elif kind == "two series":
        (prefix / "lib" / "python3.9" / "site-packages" / "onnxruntime").mkdir(parents=True, exist_ok=True)
    return kind


def old_state(mess: Mess) -> str | None:
    """Damage what Imprint noted about the environment: its journal, its receipt, what lies beside them."""
    made = mess.made
    kind = mess.chance.choice(sorted(OLD_STATES))
    folder = journal.store_of(made.home, made.prefix).folder

    def damage() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        OLD_STATES[kind](mess, folder)

    mess.late.append(damage)
    return kind


def _planted(name: str, kind: str) -> Callable[[Mess, Path], object]:
    def plant(mess: Mess, folder: Path) -> None:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if kind == "FIFO":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "garbage":
            path.write_bytes(b"\xff{]")
        else:
            path.symlink_to(mess.made.scratch / "x" / {"link to a folder": "y", "link to a file": "file.txt"}[kind])

    return plant


OLD_STATES = {
    f"{name} is a {kind}": _planted(name, kind)
    for name in ("journal.json", "receipt.json", "install.txt", "kept", "staged-old", "lock")
    for kind in ("link to a file", "link to a folder", "FIFO", "folder", "garbage")
}

TWISTS: tuple[Callable[[Mess], str | None], ...] = (
    *(rows, rows, rows, rows, many_rows, odd_file, odd_file, odd_line_ends, odd_header, odd_header, more_metadata),
    *(more_metadata, egg, link_for_folder, link_for_folder, link_for_file, link_for_file, unclaimed, unclaimed, rests),
    *(
        odd_mode,
        odd_mode,
        odd_mode,
        no_build,
        no_build,
        plug_in_inside,
        plug_in_inside,
        shared_file,
        shared_file,
        odd_place,
        old_state,
    ),
)


def _has_commas(row: str | bytes) -> bool:
    return (b"," if isinstance(row, bytes) else ",") in row  # type: ignore[operator]


def _with_commas(row: str | bytes) -> str | bytes:
    return row + b",," if isinstance(row, bytes) else f"{row},,"


def _link(mess: Mess, name: str, target: Path) -> str | None:
    path = mess.made.packages / name
    if path.is_symlink() or path.exists():
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    mess.protected.add(name)
    return f"{name} -> {str(target).replace(str(mess.made.scratch), '')}"


def _copy_small(source: Path, target: Path) -> bool:
    odd = [path for path in source.iterdir() if path.is_symlink() or not path.is_file() or path.stat().st_size > 10**7]
    if source.is_symlink() or odd:
        return False
    shutil.copytree(source, target)
    return True
