"""Ctrl-Z and back: the terminal is given back before the process stops, and taken and drawn anew when it goes on.

The run is held meanwhile: virtual SMs stop with the process anyway, and a GPU's kernel would go on with nobody to see
what it does. The event loop takes the signals, so that none comes in the midst of a write.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.drivers.linux_driver import LinuxDriver

from ofa_tui.tui.flow import FrameFlow

if TYPE_CHECKING:
    from ofa_tui.tui.app import OfaApp

BRACKETED_PASTE, HIDDEN_CURSOR = "\x1b[?2004h", "\x1b[?25l"
NOT_STOPPED_S = 0.3
"""A process that still runs so long after SIGTSTP is not stopped by it: no shell could continue it."""
ANSWERS_S = 0.5
"""How long the terminal's answers to what was asked last are waited for."""
LOOK_EVERY_S = 0.01
SAME_S = 0.1
"""SIGCONT within this time of the terminal's return is the one that brought it back."""


class Suspension:
    """Stops and continues the process of an app in a terminal, in place of Textual's handlers."""

    def __init__(self, app: OfaApp, driver: LinuxDriver) -> None:
        self._app, self._driver = app, driver
        self._loop = asyncio.get_running_loop()
        self._modes = termios.tcgetattr(driver.fileno)
        self._returned_at = self._loop.time()
        self._goes_on = self._leaving = False
        self.away = False
        """The terminal is not ours: nothing may be written."""
        self._loop.add_signal_handler(signal.SIGTSTP, self.stop)
        self._loop.add_signal_handler(signal.SIGCONT, self._continued)

    def close(self) -> None:
        """From now on the process stops as any other."""
        for number in (signal.SIGTSTP, signal.SIGCONT):
            self._loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Gives the terminal back and stops the process, until SIGCONT."""
        if not self.away:
            self._hold()
            self._once_answered(self._give_back, self._loop.time() + ANSWERS_S)

    def leave(self, end: Callable[[], object]) -> None:
        """Draws nothing more, and calls `end` as soon as it may."""
        if self._leaving:
            return
        self._leaving = self.away = True
        self.close()
        self._once_answered(end, self._loop.time() + ANSWERS_S)

    def _once_answered(self, do: Callable[[], object], latest: float) -> None:
        """The shell would take the terminal's answers for typed text."""
        if self._app.flow.unanswered and self._loop.time() < latest:
            self._loop.call_later(LOOK_EVERY_S, self._once_answered, do, latest)
        else:
            do()

    def _give_back(self) -> None:
        if self._leaving:
            return
        self._driver.suspend_application_mode()
        self._stop_process()

    def _stop_process(self) -> None:
        self._loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._loop.call_later(NOT_STOPPED_S, self._return)

    def _continued(self) -> None:
        if self.away:
            self._return()
        elif self._loop.time() - self._returned_at > SAME_S:
            # After SIGSTOP, which nobody can catch, the shell has used the terminal as it was, but for its modes. (The
            # thread that reads keys may wait for the end of a line; it must not be waited for.)
            termios.tcsetattr(self._driver.fileno, termios.TCSANOW, self._modes)
            self._driver.write(BRACKETED_PASTE + HIDDEN_CURSOR)
            self._draw_again()

    def _hold(self) -> None:
        self.away = True
        self._goes_on = self._app.model.state == "running"
        if self._goes_on:
            self._app.engine.pause(True)

    def _return(self) -> None:
        if not self.away or self._leaving:
            return
        self._loop.add_signal_handler(signal.SIGTSTP, self.stop)
        if os.tcgetpgrp(self._driver.fileno) != os.getpgrp():  # continued in the background
            self._stop_process()
            return
        self._driver.resume_application_mode()
        self.away, self._returned_at = False, self._loop.time()
        self._draw_again()
        if self._goes_on:
            self._app.engine.pause(False)
            self._app.say("going on: the run was held while this program was stopped")

    def _draw_again(self) -> None:
        self._app.flow = FrameFlow()
        self._app.refresh(layout=True)
        self._app.repaint_all(everything=True)
