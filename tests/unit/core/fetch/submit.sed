# SPDX-License-Identifier: GPL-2.0-or-later
# copy a buffer's header twice
s/iov_to_buf(e->out_sg, e->out_num, 0, .*;/&&/
