# SPDX-License-Identifier: GPL-2.0-or-later
# the header of a buffer is copied again
s/iov_to_buf(e->out_sg, e->out_num, 0, .*;/&&/
