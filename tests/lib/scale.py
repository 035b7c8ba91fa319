# SPDX-License-Identifier: GPL-2.0-or-later
"""Tell tests whether they must do their full amount of work"""

import os

# True for ./run check --long
LONG = os.environ.get("HT_LONG") == "1"
