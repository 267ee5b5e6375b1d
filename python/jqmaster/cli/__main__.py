"""`python -m jqmaster.cli`."""

import sys

from jqmaster.cli.run import main

sys.exit(main())
