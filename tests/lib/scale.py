# SPDX-License-Identifier: GPL-2.0-or-later
"""How much a test does"""

import os

# True for ./run check --long
LONG = os.environ.get("HT_LONG") == "1"
