"""The error tree. Every error says what is wrong and what to do; `suite.cli` prints it in one line.

    SuiteError                     exit 1   root (suite.protocol.errors)
    +- UsageError                  exit 3   an argument, a file or a name given by the user is wrong
    |  +- TrackError               exit 3   a track file is malformed or unknown
    |  +- ManifestError            exit 3   a submission manifest is malformed
    |  +- SpaceError               exit 3   hyperparameters (suite.protocol.errors; not a UsageError by inheritance)
    +- DataError                   exit 4   data are not prepared, or differ from their manifest
    +- LearnerError                exit 5   the image or the learner in it did wrong; carries the Status to record
    |  +- ImageError               exit 5   the image is missing, refused, or no learner
    +- ProtocolError, StateError   exit 5   (suite.protocol.errors)
    |  +- StateTooLargeError       exit 5   (suite.protocol.errors)
    +- InfrastructureError         exit 6   the machine failed: engine gone, disk full, GPU lost; retried, never scored
    +- StoreError                  exit 7   journal or database unwritable, locked or torn
    +- Interrupted                 exit 130 the user stopped the run; it can be continued

Exit 0: done. Exit 2: the command line could not be parsed (typer). Exit 8: `suite submit` ended, and its entry reads
failed.
"""

from __future__ import annotations

from suite.protocol.errors import ProtocolError, SpaceError, StateError, StateTooLargeError, SuiteError
from suite.status import Status

__all__ = [
    "EXIT_ENTRY_FAILED",
    "DataError",
    "ImageError",
    "InfrastructureError",
    "Interrupted",
    "LearnerError",
    "ManifestError",
    "ProtocolError",
    "SpaceError",
    "StateError",
    "StateTooLargeError",
    "StoreError",
    "SuiteError",
    "TrackError",
    "UsageError",
]

EXIT_ENTRY_FAILED = 8


class UsageError(SuiteError):
    """What the user asked for cannot be done as asked."""

    code = "usage"
    exit_code = 3


class TrackError(UsageError):
    """A track is unknown or its file is malformed."""

    code = "track"


class ManifestError(UsageError):
    """A submission manifest is malformed."""

    code = "manifest"


class DataError(SuiteError):
    """Data are absent, not prepared, or not what their manifest says."""

    code = "data"
    exit_code = 4


class LearnerError(SuiteError):
    """The learner did wrong; `status` is what its trial is recorded with."""

    code = "learner"
    exit_code = 5

    def __init__(self, status: Status, message: str, remedy: str = "", log_tail: str = "") -> None:
        super().__init__(message, remedy)
        self.status = status
        self.log_tail = log_tail
        self.rpc_code: int | None = None
        """The JSON-RPC error code, where the learner answered with an error."""


class ImageError(LearnerError):
    """The image is missing, refused, or holds no learner."""

    code = "image"

    def __init__(self, message: str, remedy: str = "", log_tail: str = "") -> None:
        super().__init__(Status.PROTOCOL_ERROR, message, remedy, log_tail)


class InfrastructureError(SuiteError):
    """The machine failed, not the learner: the attempt is kept, retried and never scored."""

    code = "infrastructure"
    exit_code = 6


class StoreError(SuiteError):
    """The journal or the database cannot be read or written."""

    code = "store"
    exit_code = 7


class Interrupted(SuiteError):  # noqa: N818  (named for what happened, as KeyboardInterrupt is)
    """The user stopped the run; the same command continues it."""

    code = "interrupted"
    exit_code = 130
