"""`python -m ofa_tui`, and the script `ofa-tui`."""

import signal
import sys


def run() -> int:
    """Until the command line can say a sentence about it, Ctrl-C ends the process without a word."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ofa_tui.cli import main

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())
