"""`python -m soda_tta` is the command `soda-tta`."""

import sys

from soda_tta.cli import main

if __name__ == "__main__":
    sys.exit(main())
