"""`python -m jqmaster.demo`."""

import sys

from jqmaster.demo.show import main

if __name__ == "__main__":
    sys.exit(main())
