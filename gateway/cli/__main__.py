"""`python -m gateway.cli` is the command `moteloom`."""

import sys

from gateway.cli import main

sys.exit(main())
