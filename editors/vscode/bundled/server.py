"""Start the ctxlint in ``libs`` beside this file: ``python -I server.py server``. ``bundle.py`` fills that folder."""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036 any Python of the user may be the one that starts it
    sys.exit(f"ctxlint needs Python 3.10 or newer; {sys.executable} is {sys.version.split()[0]}.")
# First, so that packages of the environment take no precedence.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "libs"))

from ctxlint.cli import program

sys.exit(program())
