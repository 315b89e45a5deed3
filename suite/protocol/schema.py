"""The JSON Schema of the protocol, for learners in any language; the checked-in copy is tested for drift."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from suite.protocol import messages
from suite.protocol.limits import MAX_DEPTH, MAX_FRAME_BYTES, MAX_NOTIFICATIONS_PER_SECOND
from suite.protocol.version import PROTOCOL_VERSION

_REQUESTS = (
    messages.DescribeRequest,
    messages.SetupRequest,
    messages.LearnRequest,
    messages.PredictRequest,
    messages.EmbedRequest,
    messages.ClassifierRequest,
    messages.ShutdownRequest,
)
_NOTES = (messages.ProgressNote, messages.StageNote)


def protocol_schema() -> dict[str, Any]:
    """Definitions of all messages; per method, which request is answered by which result; error codes and limits."""
    models: list[type[BaseModel]] = [*_REQUESTS, *_NOTES, messages.Response, *messages.RESULTS.values()]
    _, definitions = models_json_schema([(m, "validation") for m in models], ref_template="#/$defs/{model}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The learner protocol",
        "version": PROTOCOL_VERSION,
        "description": "JSON-RPC 2.0, one JSON object a line, requests on stdin, answers and notifications on stdout.",
        "limits": {
            "frame_bytes": MAX_FRAME_BYTES,
            "depth": MAX_DEPTH,
            "notifications_per_second": MAX_NOTIFICATIONS_PER_SECOND,
        },
        "methods": {
            request.model_fields["method"].default: {
                "request": {"$ref": f"#/$defs/{request.__name__}"},
                "result": {"$ref": f"#/$defs/{messages.RESULTS[request.model_fields['method'].default].__name__}"},
            }
            for request in _REQUESTS
        },
        "response": {"$ref": f"#/$defs/{messages.Response.__name__}"},
        "errors": {name: code for name, code in vars(messages.Code).items() if name.isupper()},
        "notifications": [{"$ref": f"#/$defs/{note.__name__}"} for note in _NOTES],
        **definitions,
    }
