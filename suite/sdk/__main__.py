"""`python -m suite.sdk module:Class`: the entry point of an image."""

from __future__ import annotations

import sys

from suite.protocol.errors import ProtocolError
from suite.sdk.server import load_class, serve, take_over_stdio

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m suite.sdk module:Class")
    streams = take_over_stdio()  # before the author's module is imported: it may print
    try:
        serve(lambda: load_class(sys.argv[1]), *streams)
    except ProtocolError as error:
        sys.exit(str(error))
