"""`python -m imprint_cli`."""

import sys

from imprint_cli.app import main

if __name__ == "__main__":
    sys.exit(main())
