"""The `suite` command. Commands are thin: parse, call one function, print. Heavy imports wait until a command runs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; every failure is one line on stderr and a documented exit code (see `suite.errors`)."""
    from suite.cli.app import app

    try:
        app()
    except KeyboardInterrupt:
        _say("Interrupted.", "The same command continues.")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing is wrong
        sys.exit(0)
    except Exception as error:  # noqa: BLE001  (the one place where errors become text)
        sys.exit(_explain(error))


def _explain(error: Exception) -> int:
    from suite.errors import SuiteError

    if isinstance(error, SuiteError):
        _say(error.message, error.remedy)
        return error.exit_code
    if os.environ.get("SUITE_DEBUG"):
        raise error
    if isinstance(error, OSError):
        _say(f"The system refused: {error}.", "Check space and permissions; the same command continues.")
        return 6
    _say(f"Internal error ({type(error).__name__}: {error}).", "Set SUITE_DEBUG=1 for the traceback and report it.")
    return 1


def _say(message: str, remedy: str) -> None:
    sys.stderr.write(f"suite: {' '.join(f'{message} {remedy}'.split())}\n")
