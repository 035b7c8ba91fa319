/* SPDX-License-Identifier: MIT */
/* Emit one event for each greeting. */
#include <hypertrace.h>

HT_EVENT(hello, (u32, n), (text, who));

int main(void)
{
    for (int n = 0; n < 10; n++) {
        ht_trace(hello, n, "world");
    }
}
