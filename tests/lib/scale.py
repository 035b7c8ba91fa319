# SPDX-License-Identifier: GPL-2.0-or-later
"""The amount of work of a test"""

import os

# True for ./run check --long
LONG = os.environ.get("HT_LONG") == "1"
