"""`python -m jqmaster`: the command line."""

import sys

from jqmaster.cli.run import main

sys.exit(main())
