#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One event for each greeting, from Python."""

import hypertrace

hello = hypertrace.Event("hello u32 n; text who")
for n in range(10):
    hello(n, "world")
