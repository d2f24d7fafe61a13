"""Who may ask: checked before anything else of a request is read."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ofa_tui.http.errors import ApiError
from ofa_tui.http.options import is_loopback


def check_client(headers: Mapping[str, str], token: str) -> None:
    """Raises ApiError for a request without the token, if there is one.

    Where there is none, only this machine reaches us, its browser included: the name by which it does so has to be this
    machine's, so that no page of another site gets here under its own.
    """
    if token:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise ApiError(401, "the token is missing or wrong; send it as Authorization: Bearer TOKEN",
                           "invalid_api_key")
    elif not is_loopback(_host(headers.get("host", ""))):
        raise ApiError(403, "this endpoint answers to this machine's own names only", "host_not_allowed")


def check_json(headers: Mapping[str, str]) -> None:
    """Raises ApiError unless the body is said to be JSON, which a page of another site cannot say."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "send the body as Content-Type: application/json")


def _host(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
