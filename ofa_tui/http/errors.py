"""What goes wrong with a request, in the form in which OpenAI's clients read it."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """An answer other than 200: `message` is a sentence for people, `code` a word for programs."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": _kind(self.status), "param": self.param, "code": self.code}}


def _kind(status: int) -> str:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")


def run_is_over() -> ApiError:
    return ApiError(503, "the run is over", "run_over")


def queue_is_full(waiting: int) -> ApiError:
    return ApiError(429, f"{waiting} requests wait already; try again later", "rate_limit_exceeded")
