"""`python -m fairlane` is the command line."""

import sys

from fairlane.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
