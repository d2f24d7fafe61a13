"""The one family of errors a user sees: a sentence that says what is wrong and what to do."""


class OfaError(Exception):
    """Base of all expected failures.

    The command line prints the message, nothing else, and leaves with `exit_code`.
    """

    exit_code = 2


class AbortedError(OfaError):
    """The kernel stopped itself: a deadline passed or a check inside it failed."""

    exit_code = 3
