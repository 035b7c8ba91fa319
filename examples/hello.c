/* SPDX-License-Identifier: MIT */
/* One event a greeting, over whichever channel the device was given. */
#include <hypertrace/event.h>

HT_EVENT(hello, (u32, n), (text, who));

int main(void)
{
    static struct ht_stream s __attribute__((aligned(64)));
    struct ht_device *dev;
    uint32_t n;

    if (ht_open(NULL, &dev) || ht_register(dev, &ht_class_hello) < 0 ||
        ht_stream_open(dev, &s, NULL)) {
        return 1;
    }
    for (n = 0; n < 10; n++) {
        ht_emit_hello(&s, n, "world");
    }
    n = ht_stream_close(&s);
    ht_close(dev);
    return n ? 1 : 0;
}
