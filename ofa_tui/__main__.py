"""`python -m ofa_tui`."""

import sys

from ofa_tui.cli import main

sys.exit(main())
