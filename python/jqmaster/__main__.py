"""`python -m jqmaster`: the command line."""

import sys

from jqmaster.cli import main

sys.exit(main())
