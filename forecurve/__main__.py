"""`python -m forecurve`, where its command is not on the path."""

import sys

from forecurve.cli import main

sys.exit(main())
