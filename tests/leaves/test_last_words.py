"""The line that says why, out of messages as they really are."""

from __future__ import annotations

import pytest

from imprint.last_words import LIMIT, decisive_line, how_it_ended, is_of_outside, why_it_ended

# Raised by numpy 2.3 where a library of its own is missing; read 2026-12-01.
NUMPY = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/v/lib/python3.11/site-packages/numpy/__init__.py", line 112, in <module>
    from numpy.__config__ import show_config
ImportError:

IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!

Importing the numpy C-extensions failed. This error can happen for
many reasons, often due to issues with your setup or how NumPy was
installed.

We have compiled some common reasons and troubleshooting tips at:

    https://numpy.org/devdocs/user/troubleshooting-importerror.html

Please note and check the following:

  * The Python version is: Python3.11 from "/v/bin/python"
  * The NumPy version is: "2.3.5"

and make sure that they are the versions you expect.
Please carefully study the documentation linked above for further help.

Original error was: {why}
"""
NUMPY_1 = """\
A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.3.5 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.
Some module may need to rebuild instead e.g. with 'pybind11>=2.12'.

If you are a user of the module, the easiest solution will be to
downgrade to 'numpy<2' or try to upgrade the affected module.
We expect that some modules will need time to support NumPy 2.

Traceback (most recent call last):  File "<string>", line 1, in <module>
AttributeError: _ARRAY_API not found
"""
PROVIDER = (
    "2026-11-30 12:00:00.123456789 [E:onnxruntime:Default, provider_bridge_ort.cc:2251 TryGetProviderInfo_CUDA] "
    "/onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:1844 onnxruntime::Provider& "
    "onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library "
    "libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or "
    "directory\n\n"
    "2026-11-30 12:00:00.223456789 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:1013 CreateExecutionProvider] "
    "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 13.*. Please install all dependencies as "
    "mentioned in the GPU requirements page (https://onnxruntime.ai/docs/x.html#requirements), make sure they're in "
    "the PATH, and that your GPU is supported.\n"
)
IR = (
    "Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from /home/ada/m/model.onnx failed:/onnxruntime_src/"
    "onnxruntime/core/graph/model.cc:179 onnxruntime::Model::Model(onnx::ModelProto&&, const "
    "onnxruntime::PathString&, const onnxruntime::IOnnxRuntimeOpSchemaRegistryList*, const "
    "onnxruntime::logging::Logger&, const onnxruntime::ModelOptions&) Unsupported model IR version: 14, max "
    "supported IR version: 13"
)
PROTOBUF = (
    "InvalidProtobuf: [ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from model.onnx failed:Protobuf parsing "
    "failed."
)
DIMENSIONS = (
    "InvalidArgument: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the "
    "following indices\n index: 0 Got: 3 Expected: 4\n Please fix either the inputs/outputs or the model."
)
STACK = (
    "ImportError: /v/lib/onnxruntime/capi/onnxruntime_pybind11_state.so: cannot enable executable stack as shared "
    "object requires: Invalid argument"
)
CHAIN = """\
Traceback (most recent call last):
  File "a.py", line 3, in <module>
    import numpy
ModuleNotFoundError: No module named 'numpy'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 5, in <module>
    raise RuntimeError("onnxruntime needs it")
RuntimeError: onnxruntime needs it
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            NUMPY.format(
                why="libscipy_openblas64_-fdde5778.so: cannot open shared object file: No such file or directory"
            ),
            "libscipy_openblas64_-fdde5778.so: cannot open shared object file: No such file or directory",
        ),
        (
            NUMPY.format(why="No module named 'numpy._core._multiarray_umath'"),
            "No module named 'numpy._core._multiarray_umath'",
        ),
        (NUMPY.format(why="PyCapsule_Import could not import module"), "PyCapsule_Import could not import module"),
        (NUMPY_1, "AttributeError: _ARRAY_API not found"),
        (PROVIDER, "libcublasLt.so.13: cannot open shared object file: No such file or directory"),
        (CHAIN, "ModuleNotFoundError: No module named 'numpy'"),
        (
            IR,
            "Unsupported model IR version: 14, max supported IR version: 13",
        ),
        (
            PROTOBUF,
            "failed:Protobuf parsing failed.",
        ),
        (
            STACK,
            "cannot enable executable stack as shared object requires: Invalid argument",
        ),
        (
            "ImportError: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /v/x.so)",
            "version `GLIBCXX_3.4.29' not found",
        ),
        (
            DIMENSIONS,
            "InvalidArgument: Got invalid dimensions for input: x for the following indices",
        ),
        ("cache: Permission denied, so it is not used\nValueError: the reason\n", "ValueError: the reason"),
        ("OSError: [Errno 28] No space left on device\n", "OSError: [Errno 28] No space left on device"),
        ("terminate called after throwing 'std::bad_alloc'\n  what():  std::bad_alloc\nbye\n", "bad_alloc"),
        ("Illegal instruction (core dumped)\n", "Illegal instruction (core dumped)"),
        ("warning: something\nerror: the reason\nhint: try that\n", "error: the reason"),
        ("\x1b[31mValueError: red\x1b[0m\n", "ValueError: red"),
        ("RuntimeError: first\nsome library: goodbye\n", "RuntimeError: first"),
        ("goodbye\n\n", "goodbye"),
        ("KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("\n \n", ""),
        ("", ""),
    ],
)
def test_the_line_that_says_why_is_the_one_that_is_kept(text: str, says: str) -> None:
    line = decisive_line(text)
    assert line.endswith(says) or says in line
    assert bool(line) is bool(says)
    assert not {word for word in (".cc:", "onnxruntime_src", "PLEASE READ", "\x1b") if word in line}


def test_of_a_long_line_the_end_is_kept() -> None:
    line = decisive_line("RuntimeError: " + "x" * 1000 + " because of this")
    assert len(line) <= LIMIT
    assert line.startswith("RuntimeError: ")
    assert line.endswith(" because of this")


@pytest.mark.parametrize(
    ("code", "text", "says"),
    [
        (3, "", "exit code 3: no output"),
        (-4, "", "SIGILL (illegal instruction): no output"),
        (
            -11,
            "Fatal Python error: Segmentation fault\n",
            "SIGSEGV (segmentation fault): Fatal Python error: Segmentation fault",
        ),
        (1, "ImportError: no\n", "exit code 1: ImportError: no"),
        (2, "Unknown option: -I\nusage: python\nTry `python -h' for more.\n", "exit code 2: Unknown option: -I"),
        (None, "", "it is not known how it ended: no output"),
    ],
)
def test_without_a_word_the_end_itself_says_why(code: int | None, text: str, says: str) -> None:
    assert why_it_ended(code, text) == says


def test_windows_codes_are_read_as_windows_writes_them() -> None:
    assert how_it_ended(0xC0000005) == "exit code 0xC0000005"
    assert how_it_ended(2) == "exit code 2"


@pytest.mark.parametrize(
    ("ended", "outside"),
    [
        ("SIGKILL", True),
        ("SIGHUP", True),
        ("signal 77", True),
        ("SIGSEGV", False),
        ("SIGILL", False),
        ("0xC000013A", True),
        ("0xC0000005", False),
    ]
    + [(other, False) for other in ("timeout", "exit code 1", "exit code 0xC0000005")],
)
def test_a_signal_that_a_process_does_not_bring_upon_itself_comes_from_outside(ended: str, *, outside: bool) -> None:
    assert is_of_outside(ended) is outside
