"""`python -m reference [SLUG]`: serve one method; without an argument the one that REFERENCE_METHOD names.

All images share this entry point and differ only in that variable, so that they share their layers.
"""

from __future__ import annotations

import os
import sys

from reference.catalogue import METHODS
from suite.protocol.errors import ProtocolError
from suite.sdk.server import load_class, serve, take_over_stdio

if __name__ == "__main__":
    slug = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("REFERENCE_METHOD", "")
    if slug not in METHODS:
        sys.exit(f"{slug!r} is no reference method; choose one of {', '.join(sorted(METHODS))}")
    streams = take_over_stdio()  # before the method's module is imported: libraries may print
    try:
        serve(lambda: load_class(METHODS[slug]), *streams)
    except ProtocolError as error:
        sys.exit(str(error))
