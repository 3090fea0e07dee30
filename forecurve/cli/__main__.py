"""`python -m forecurve.cli`."""

import sys

from forecurve.cli import main

sys.exit(main())
