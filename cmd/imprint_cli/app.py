"""The console script: registers the commands, runs one, and turns what it returns or raises into output and exit code.

Start-up speed is a feature: `main` registers only the command that is called, and a command imports what it needs
inside its body. Nothing else in this package prints a result or exits.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import typer

from imprint.errors import InterruptedByUserError, UsageError
from imprint.hints import helps
from imprint.printable import printable_data
from imprint.results import Empty, Notice, Result
from imprint_cli import exits, human, machine
from imprint_cli.answer import Answer
from imprint_cli.help import with_our_help
from imprint_cli.quick import quicken
from imprint_cli.registry import COMMANDS, Entry, words_of


def build(commands: Mapping[str, Entry], only: str | None = None) -> typer.Typer:
    """Return the application with every command, or with one alone."""
    app = typer.Typer(
        name="imprint",
        help="Put the right ONNX Runtime on this machine, prove that it works, and embed text with it.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, entry in commands.items():
        if only is None or name == only:
            member = getattr(import_module(entry.module), entry.attribute)
            if isinstance(member, typer.Typer):
                app.add_typer(member, name=name)
            else:
                app.command(name)(member)
    return app


def _version(value: bool) -> None:
    if value:
        from imprint import __version__

        human.show(f"imprint {__version__}")
        raise typer.Exit


def _root(
    *,
    version: bool = typer.Option(
        False,
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    """Put the right ONNX Runtime on this machine, prove that it works, and embed text with it."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, also in a command line that cannot be parsed."""
    before = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    return "--json" in before


def main(
    arguments: Sequence[str] | None = None,
    commands: Mapping[str, Entry] = COMMANDS,
    ready: Callable[[], None] | None = None,
) -> int:
    """Run one command line and return its exit code; nothing is raised.

    `ready` is called first, where what it raises is told like any error.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    try:
        return _answer(given, commands, ready)
    except OSError as error:  # stdout cannot be written: nobody reads any more, or an error's document does not fit
        human.silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return exits.FAILED
        notice, code = exits.explain(error, given)
        human.say_notice("error", notice)
        return code


def _prepare_streams() -> None:
    # A process started with a stream closed has None there. An answer that cannot be written is a failure, talk is not.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as we do
    for stream in (sys.stdout, sys.stderr):
        # Text that the terminal's encoding lacks is shown escaped; it is no reason to fail.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")


def _answer(arguments: list[str], commands: Mapping[str, Entry], ready: Callable[[], None] | None) -> int:
    words = words_of(arguments, commands)
    as_json = wants_json(arguments)
    try:
        if ready is not None:
            ready()
        outcome = _run(arguments, words, commands)
        if isinstance(outcome, Answer):
            return _print(" ".join(words), outcome, as_json=as_json)
        if outcome == exits.INTERRUPTED:
            raise InterruptedByUserError("interrupted")  # noqa: TRY301 - one place renders every error
    except (Exception, KeyboardInterrupt) as error:
        notice, code = exits.explain(error, arguments)
        if notice.hint is None and code == exits.USAGE:
            notice = Notice(notice.code, notice.message, _help_hint(words))
        # A stdout that cannot be written takes no JSON either.
        return _refuse(" ".join(words), notice, code, as_json=_takes_output() and as_json)
    return outcome if isinstance(outcome, int) else exits.OK


def _takes_output() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        human.silence(sys.stdout)
        return False
    return True


_COMPLETION = frozenset({"--install-completion", "--show-completion"})


def _run(arguments: list[str], words: tuple[str, ...], commands: Mapping[str, Entry]) -> object:
    completing = any(name.endswith("_COMPLETE") for name in os.environ if name.startswith("_IMPRINT"))
    application = typer.main.get_command(build(commands, words[0] if words and not completing else None))
    quicken(application)
    if arguments[:1] and arguments[0] in _COMPLETION and len(arguments) > 1:
        raise UsageError(f"`{arguments[0]}` takes no value", hint=helps("completion-own-shell"))
    if "--install-completion" in arguments:
        from imprint_cli.completion import with_our_completion

        with_our_completion(application)
    with_our_help(application)
    if not arguments and not completing:
        with application.make_context("imprint", ["config"]) as context:
            human.say(context.get_help())
        return exits.USAGE
    try:
        return application.main(args=arguments, prog_name="imprint", standalone_mode=False)
    except typer.TyperException as error:
        raise _usage_error(error, words) from error


def _usage_error(error: typer.TyperException, words: tuple[str, ...]) -> UsageError:
    """Word an error of the command-line parser as ours."""
    message = error.format_message().rstrip(".")
    # The command whose parser gave up: of words that name no command, the last that does.
    context = getattr(error, "ctx", None)
    known = words if context is None else tuple(context.command_path.split()[1:])
    return UsageError(message[:1].lower() + message[1:], hint=_help_hint(known))


def _help_hint(words: tuple[str, ...]) -> str:
    return helps("help", command=" ".join(("imprint", *words)))


_OF_SEVERAL_LINES = frozenset({"report"})
"""The fields whose texts keep their line ends; every other text is shown as one line."""


def _print(command: str, answer: Answer, *, as_json: bool) -> int:
    result = answer.result
    code = exits.exit_code_of_notices(result.errors) if answer.exit_code is None else answer.exit_code
    if as_json:
        machine.emit(machine.envelope(command, result), indent=None if command in machine.STREAMING else 2)
        return code
    if answer.text is None:
        machine.emit(result.data)
    elif text := answer.text(printable_data(result.payload, _OF_SEVERAL_LINES)):
        human.show(text)
    human.say_notices(result.warnings, result.errors)
    if answer.hint is not None and result.ok:
        human.say_hint(answer.hint)
    return code


def _refuse(command: str, notice: Notice, code: int, *, as_json: bool) -> int:
    if as_json:
        return _print(command or "imprint", Answer(Result(Empty(), errors=(notice,)), None, code), as_json=True)
    human.say_notice("error", notice)
    return code
