"""`python -m jqmaster.cli`."""

import sys

from jqmaster.cli import main

sys.exit(main())
