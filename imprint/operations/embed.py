"""`embed`: texts to unit vectors on the runtime that is set up, saying on what it runs and why.

It is one long file because a use case is one file: what is refused, said, streamed and kept of one run.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from imprint import ownership
from imprint.context import Context
from imprint.embedding import sources
from imprint.embedding.catalogue import Model, load_catalogue
from imprint.embedding.client import Done, Hello, Progress, Rows, Settings, Worker
from imprint.embedding.models import model_files
from imprint.embedding.outputs import FORMATS, STDOUT, Output
from imprint.errors import ImprintError, InvalidValueError, UsageError
from imprint.hints import helps
from imprint.planning.model import Device, Plan
from imprint.probing.processor import usable_cores
from imprint.probing.this_machine import RealHost
from imprint.quoting import typed
from imprint.results import Notice, Result
from imprint.runtime import proofs
from imprint.runtime.check import proof
from imprint.runtime.check.children import INSIDE
from imprint.runtime.check.proof import Proof
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.interrupts import interruptible
from imprint.runtime.target import Target
from imprint.runtime.verdict import FAILED, TOO_NEW, TargetVerdict, decide
from imprint.situation.asked import unused_gpu_device
from imprint.situation.inputs import gather
from imprint.situation.reading import notices_of
from imprint.situation.targets import command_for, require_start, target_of
from imprint.situation.verdict import look_at, to_set_up
from imprint.state import config, last_run
from imprint.state.config import Config
from imprint.state.findings import Findings
from imprint.state.last_run import LastRun
from imprint.state.settings import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS
from imprint.values import Record, replace
from imprint.words import RunsOn

INPUT_FORMATS = ("lines", "jsonl")

__all__ = ["STDOUT", "EmbedOptions", "embed"]


class EmbedOptions(Record):
    """What to embed, and where to. Either `texts` or `input` (a path, or `-` for standard input).

    `output` None, or a name of it such as `-`, writes to standard output. `query` uses the model's prefix for queries
    instead of passages. `venv` runs in somebody's own environment.
    """

    texts: tuple[str, ...] = ()
    input: str | None = None
    input_format: str = "lines"
    output: Path | None = None
    format: str = "jsonl"
    query: bool = False
    require_gpu: bool = False
    venv: Path | None = None


class EmbedSummary(Record):
    """What was embedded, and on what; `worker_peak_bytes` is the peak memory of the process that computed."""

    model: str
    dims: int
    texts: int
    truncated: int
    tokens: int
    format: str
    output: str | None
    runs_on: RunsOn
    device: Device | None
    provider: str | None
    version: str | None
    seconds: float
    worker_peak_bytes: int | None


class _Place(Record):
    """Where the model will run, as far as that is known before it does."""

    target: Target
    plan: Plan
    device: Device | None

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU is planned on which this build was proved."""
        return self.device is not None


def embed(  # noqa: PLR0913 - all but the first three are keywords
    context: Context,
    options: EmbedOptions,
    on_event: OnEvent,
    *,
    stdin: Callable[[], IO[bytes]],
    stdout: IO[bytes],
    worker_package: Path = INSIDE,
) -> Result[EmbedSummary]:
    """Embed every text and write one row each, in order: unit vectors, float32.

    Memory does not grow with the input. The first event says on what it runs. Raises UsageError for input that cannot
    be read (with its line), ImprintError `not-installed`, `model-missing`, a plan's code where a GPU is required and
    not to be had, and what the worker raises. An output file is then as it was before.
    """
    options = replace(options, output=None) if str(options.output) in STDOUT else options
    _check(options)
    if options.output is not None and ownership.is_ours(context.home, options.output):
        raise UsageError(f"`{options.output}` is a place of Imprint's own", hint=helps("vectors-elsewhere"))
    settings = config.load(context.home, context.environ, context.flags)
    model = load_catalogue().model(settings.text("model.name"))
    findings = Findings()
    place = _place(context, options, findings)
    worker_settings = _settings(context, options, settings, model, place, worker_package)
    warnings = [*notices_of(findings), *unused_gpu_device(context)]
    if (mistaken := text_that_is_a_file(options)) is not None:
        warnings.append(mistaken)
    started = time.monotonic()
    output = Output(options.output, stdout, options.format, model.dims)
    try:
        with (
            interruptible("embed", hint="no-output-changed"),
            _opened(options, stdin, stdout) as (texts, total),
            output,
            _blaming_the_target(context, place),
            Worker(worker_settings) as worker,
        ):
            hello = worker.start()
            warnings += _announce(context, options, settings, place, hello, on_event)
            _note(context, model, place, hello)
            prefix = (model.query_prefix if options.query else model.passage_prefix).encode()
            done = _run(worker, (prefix + text for text in texts), output, on_event, total)
            output.finish()
    except ImprintError as error:
        if output.kept is not None:
            error.message += f"; the vectors of the first {output.rows} texts are in `{output.kept}`"
        raise
    seconds = time.monotonic() - started
    on_event(
        Event(
            "done",
            "embed",
            f"{done.texts} {'text' if done.texts == 1 else 'texts'} in {seconds:.1f} s",
            done.texts,
            done.texts,
        )
    )
    if done.truncated:
        limit = worker_settings.max_tokens
        warnings.append(Notice("truncated", f"{done.truncated} of {done.texts} texts were cut to {limit} tokens"))
    return Result(_summary(options, model, place, hello, done, seconds), tuple(warnings))


def text_that_is_a_file(options: EmbedOptions) -> Notice | None:
    """Return the warning that all texts are names of files, as of one who meant what is in them; None elsewhere."""
    if not options.texts or not all(os.path.isfile(text) for text in options.texts):  # noqa: PTH113 - never raises
        return None
    first = options.texts[0]
    hint = helps("lines-of-the-file", command=typed("imprint", "embed", "--input", first))
    return Notice("text-is-a-file", f"`{first}` is a file, but it was embedded as text", hint)


_OF_THE_TARGET = frozenset({"target-incomplete", "model-unusable", "worker-crashed", "worker-failed"})
"""Codes of a worker that may have met what the verdict about its target names better."""


@contextlib.contextmanager
def _blaming_the_target(context: Context, place: _Place) -> Iterator[None]:
    """Tell a failure by what is wrong with the target, where its files show that something is."""
    try:
        yield
    except ImprintError as error:
        if error.specific_code not in _OF_THE_TARGET:
            raise
        verdict = decide(look_at(context, place.target, place.plan, gpu_proved=False, prove=None))
        if verdict.problem is None and error.specific_code != "model-unusable":
            # What is recorded says nothing: then the worker's own end is what the verdict goes by.
            seen = Proof("failed", "import-failed", error.message)
            verdict = decide(look_at(context, place.target, place.plan, gpu_proved=False, prove=None, evidence=seen))
        raise blamed(verdict, error) from error


def blamed(verdict: TargetVerdict, error: ImprintError) -> ImprintError:
    """Return a worker's failure as what the verdict says is wrong, where it knows more; else as it is."""
    problem = verdict.problem
    # A worker that met a model which is too new says so itself.
    if problem is None or problem.code == TOO_NEW or (problem.code == FAILED and error.message in problem.text):
        return error
    more = "" if error.message in problem.text else f" ({error.message})"
    return ImprintError(
        f"embeddings do not run here: {problem.text}{more}", hint=problem.hint or error.hint, code=problem.code
    )


def _check(options: EmbedOptions) -> None:
    if options.format not in FORMATS:
        raise InvalidValueError(f"unknown format: {options.format}", hint=helps("valid", values=", ".join(FORMATS)))
    if options.input_format not in INPUT_FORMATS:
        raise InvalidValueError(
            f"unknown input format: {options.input_format}", hint=helps("valid", values=", ".join(INPUT_FORMATS))
        )
    if options.texts and options.input is not None:
        raise UsageError("texts and `--input` were both given", hint=helps("give-one"))
    if not options.texts and options.input is None:
        raise UsageError("nothing to embed", hint=helps("give-texts"))


def _place(context: Context, options: EmbedOptions, findings: Findings) -> _Place:
    target = target_of(context, options.venv, findings)
    if target is None:
        hint = to_set_up(context, None, gather(context, None, findings=findings).plan)
        raise findings.explain(ImprintError("no runtime is set up here", hint=hint, code="not-installed"))
    require_start(target)
    inputs = gather(context, target, findings=findings)
    plan = inputs.plan
    _refuse_wrong_numbers(context, target, plan)
    place = _Place(target, plan, plan.device if inputs.proved and plan.build == target.build else None)
    if options.require_gpu and not place.on_gpu:
        raise _no_gpu(place)
    return place


def _refuse_wrong_numbers(context: Context, target: Target, plan: Plan) -> None:
    """Raise ImprintError where a check that holds found wrong numbers: the vectors would be wrong too."""
    kept = proofs.read(context.home, target)
    if kept is None or kept.kind != "wrong-numbers" or proof.changed_since(kept, target, context.environ):
        return
    problem = decide(look_at(context, target, plan, gpu_proved=False, prove=None, evidence=kept)).problem
    if problem is not None:
        raise ImprintError(f"embeddings do not run here: {problem.text}", hint=problem.hint, code=problem.code)


def _no_gpu(place: _Place) -> ImprintError:
    plan, setup = place.plan, f"run `{command_for(place.target)}`"
    if plan.device is not None and plan.build != place.target.build:
        message = f"a GPU is required, but {plan.build} {plan.version} is not installed yet: {plan.reason}"
        return ImprintError(message, hint=setup, code="gpu-not-proved")
    if plan.device is not None:
        return ImprintError(
            f"a GPU is required, but none is proved here: {plan.reason}", hint=setup, code="gpu-not-proved"
        )
    hint = helps("ask-for-a-gpu") if plan.code == "device-cpu" else plan.hint
    return ImprintError(f"a GPU is required, but none is planned: {plan.reason}", hint=hint, code=plan.code)


def _settings(  # noqa: PLR0913, PLR0917 - one call site
    context: Context, options: EmbedOptions, settings: Config, model: Model, place: _Place, worker: Path
) -> Settings:
    files = model_files(context.home, model.name, setup=command_for(place.target))
    max_tokens = _number(settings, "model.max_tokens", model.max_tokens)
    model.check_tokens(max_tokens)
    model.check_file(settings.text("model.file"))
    device = place.device
    return Settings(
        python=place.target.python,
        model=files.model,
        tokenizer=files.tokenizer,
        dims=model.dims,
        rows=FORMATS[options.format],
        gpu=device,
        threads=_number(settings, "model.threads", usable_cores(RealHost(context.environ)) or os.cpu_count() or 1),
        max_tokens=max_tokens,
        batch_tokens=_number(settings, "model.batch_tokens", CPU_BATCH_TOKENS),
        gpu_batch_tokens=_number(settings, "model.batch_tokens", GPU_BATCH_TOKENS),
        repair=f"{command_for(None)} --repair" if options.venv is None else command_for(place.target),
        environ=context.environ,
        worker=worker,
    )


def _number(settings: Config, key: str, default: int) -> int:
    """Return what somebody set, else the default for this model and device."""
    setting = settings.get(key)
    return setting.value if setting.origin != "default" and isinstance(setting.value, int) else default


@contextlib.contextmanager
def _opened(
    options: EmbedOptions, stdin: Callable[[], IO[bytes]], stdout: IO[bytes]
) -> Iterator[tuple[Iterator[bytes], int | None]]:
    """Yield the texts, and how many there are where that is known before they are read."""
    if options.input is None:
        yield sources.texts_of_arguments(options.texts), len(options.texts)
        return
    read = sources.texts_of_lines if options.input_format == "lines" else sources.texts_of_json_lines
    with contextlib.ExitStack() as opened:
        if options.input == "-":
            name, stream = sources.STDIN, stdin()
        else:
            name = options.input
            try:
                stream = opened.enter_context(Path(name).open("rb"))
            except OSError as error:
                raise UsageError(f"`{name}` cannot be read: {error.strerror}", hint=helps("name-a-file")) from error
        _require_apart(name, stream, options.output, stdout)
        yield read(stream, name), sources.count_lines(stream)


def _require_apart(name: str, stream: IO[bytes], output: Path | None, stdout: IO[bytes]) -> None:
    """Raise UsageError where the vectors would be written over the texts."""
    try:
        source = os.fstat(stream.fileno())
        target = os.fstat(stdout.fileno()) if output is None else output.stat()
    except OSError:  # not a file, or not there yet
        return
    if stat.S_ISREG(source.st_mode) and os.path.samestat(source, target):
        where = "standard output" if output is None else f"`{output}`"
        raise UsageError(f"{where} is the same file as the input, {name}", hint=helps("vectors-elsewhere"))


def _announce(  # noqa: PLR0913, PLR0917 - one call site
    context: Context, options: EmbedOptions, settings: Config, place: _Place, hello: Hello, on_event: OnEvent
) -> list[Notice]:
    """Say on what it truly runs; return the callout where that is not what was asked for."""
    line = _line(context, options, place, hello)
    why = helps("check-says-why", command=command_for(place.target, "check"))
    missed: Notice | None = None
    if place.on_gpu and not hello.on_gpu:
        line = f"embeddings run on the CPU (ONNX Runtime {hello.version}), because the GPU could not be used"
        if options.require_gpu:
            raise ImprintError(line, hint=why, code="gpu-not-used")
        missed = Notice("gpu-not-used", line, why)
    elif settings.device == "gpu" and not hello.on_gpu:
        planned = place.plan.device is not None
        code = "gpu-not-proved" if planned else place.plan.code
        hint = helps("run", command=command_for(place.target)) if planned else place.plan.hint
        missed = Notice(code, f"you asked for a GPU, but {line}", hint)
    # The first line that anybody sees: where the GPU was asked for and is not used, a warning.
    on_event(Event("info" if missed is None else "warning", "embed", line if missed is None else missed.message))
    if missed is not None and missed.hint is not None:
        on_event(Event("info", "hint", missed.hint))
    return [] if missed is None else [missed]


def _line(context: Context, options: EmbedOptions, place: _Place, hello: Hello) -> str:
    if options.venv is not None:
        device = "the GPU" if hello.on_gpu else "the CPU"
        return f"embeddings run on {device} (ONNX Runtime {hello.version} in `{place.target.prefix}`)"
    seen = Proof("ok", provider=hello.provider)
    return decide(
        look_at(context, place.target, place.plan, gpu_proved=place.on_gpu, prove=None, evidence=seen, look=False)
    ).line


def _note(context: Context, model: Model, place: _Place, hello: Hello) -> None:
    """Write down on what the managed target's worker truly runs, for status and doctor."""
    if place.target.generation is not None:
        asked = "gpu" if place.on_gpu else "cpu"
        last_run.note(context.home, LastRun(asked, hello.provider, place.target.generation, model.name))


def _run(worker: Worker, texts: Iterator[bytes], output: Output, on_event: OnEvent, total: int | None) -> Done:
    shown = 0
    on_event(Event("start", "embed", "texts embedded", 0, total))
    for answer in worker.embed(texts):
        if isinstance(answer, Done):
            return answer
        if isinstance(answer, Rows):
            output.write(answer.count, answer.data)
        elif isinstance(answer, Progress) and answer.done > shown:
            shown = answer.done
            on_event(Event("progress", "embed", "texts embedded", shown, total))
    raise ImprintError("the embedding worker stopped without an answer", code="worker-failed")


def _summary(  # noqa: PLR0913, PLR0917 - one call site
    options: EmbedOptions, model: Model, place: _Place, hello: Hello, done: Done, seconds: float
) -> EmbedSummary:
    return EmbedSummary(
        model=model.name,
        dims=model.dims,
        texts=done.texts,
        truncated=done.truncated,
        tokens=done.tokens,
        format=options.format,
        output=None if options.output is None else str(options.output),
        runs_on="gpu" if hello.on_gpu else "cpu",
        device=place.plan.device if hello.on_gpu else None,
        provider=hello.provider,
        version=hello.version,
        seconds=round(seconds, 3),
        worker_peak_bytes=done.peak_bytes,
    )
