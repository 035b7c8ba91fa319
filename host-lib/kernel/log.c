/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's log from its memory
 *
 * A descriptor's state holds its id and, in two bits, the progress of its
 * record.  The writer sets the state to "reserved" before it writes, and to
 * "final" afterwards; a descriptor that is reused gets another id.  A copy of a
 * record is therefore valid if the state is final before the copy and the same
 * after it.  A text begins with its descriptor's id.
 */
#include "hypertrace/kernel-log.h"

#define ID_MASK     (UINT64_MAX >> 2)
#define STATE_SHIFT 62
#define FINAL       2u
#define REUSABLE    3u
/* Bit of a text's position that is set if the record has no text */
#define NO_TEXT     1u
#define ID_BYTES    8u
/* Maximum sizes in bytes of the kernel's structures of a log record */
#define DESC_MAX    64u
#define INFO_MAX    256u
/* Maximum number of descriptors that a call of ht_kernel_log_next() reads */
#define PASS_MAX    256u

/* A copy of the printk_ringbuffer's members */
typedef struct Ring {
    uint32_t count_bits;
    uint32_t size_bits;
    uint64_t descs;
    uint64_t infos;
    uint64_t data;
    uint64_t head;
    uint64_t tail;
} Ring;

struct HtKernelLog {
    HtKernelSpace space;
    HtKernelLogLayout layout;
    uint64_t prb;
    uint64_t ring;              /* guest address of the ring that is read */
    Ring now;
    bool known;                 /* @now is valid */
    /* offset in the memory of the ring's head_id, for ht_kernel_log_hint() */
    uint64_t head_at;
    bool has_head;              /* @head_at is valid */
    uint64_t id;                /* id of the descriptor to read next */
    bool placed;                /* @id is valid */
    uint64_t next_seq;
    char text[HT_LOG_TEXT_MAX];
};

static bool need(const HtBtf *btf, const char *type, const char *path,
                 uint32_t size, uint32_t *offset, GError **error)
{
    uint32_t found;

    if (!ht_btf_offset(btf, type, path, offset, &found) && found == size) {
        return true;
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "the kernel's types have no %s.%s of %u bytes: its log cannot "
                "be read; kernels from 5.10 on have it", type, path, size);
    return false;
}

bool ht_kernel_log_layout(const HtBtf *btf, HtKernelLogLayout *p,
                          GError **error)
{
    static const char rb[] = "printk_ringbuffer";
    static const char desc[] = "prb_desc";
    static const char info[] = "printk_info";

    memset(p, 0, sizeof(*p));
    if (!need(btf, rb, "desc_ring.count_bits", 4, &p->count_bits, error) ||
        !need(btf, rb, "desc_ring.descs", 8, &p->descs, error) ||
        !need(btf, rb, "desc_ring.infos", 8, &p->infos, error) ||
        !need(btf, rb, "desc_ring.head_id", 8, &p->head, error) ||
        !need(btf, rb, "desc_ring.tail_id", 8, &p->tail, error) ||
        !need(btf, rb, "text_data_ring.size_bits", 4, &p->size_bits, error) ||
        !need(btf, rb, "text_data_ring.data", 8, &p->data, error) ||
        !need(btf, desc, "state_var", 8, &p->state, error) ||
        !need(btf, desc, "text_blk_lpos.begin", 8, &p->begin, error) ||
        !need(btf, desc, "text_blk_lpos.next", 8, &p->next, error) ||
        !need(btf, info, "seq", 8, &p->seq, error) ||
        !need(btf, info, "ts_nsec", 8, &p->ns, error) ||
        !need(btf, info, "text_len", 2, &p->len, error) ||
        !need(btf, info, "facility", 1, &p->facility, error) ||
        !need(btf, info, "caller_id", 4, &p->caller, error)) {
        return false;
    }
    if (ht_btf_field(btf, info, "level", &p->level) ||
        ht_btf_struct_size(btf, desc, &p->desc_size) ||
        ht_btf_struct_size(btf, info, &p->info_size) ||
        p->desc_size > DESC_MAX || p->info_size > INFO_MAX) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel's log has a layout that is not known");
        return false;
    }
    return true;
}

HtKernelLog *ht_kernel_log_new(const HtKernelSpace *space,
                               const HtKernelLogLayout *layout, uint64_t prb)
{
    HtKernelLog *log = g_new0(HtKernelLog, 1);

    log->space = *space;
    log->layout = *layout;
    log->prb = prb;
    return log;
}

void ht_kernel_log_free(HtKernelLog *log)
{
    g_free(log);
}

static uint64_t end_of(const Ring *r)
{
    return ((r->head & ID_MASK) + 1) & ID_MASK;
}

/* Set HtKernelLog.head_at */
static void find_head(HtKernelLog *log)
{
    const HtKernelSpace *s = &log->space;
    uint64_t left;

    log->has_head = !s->translate(s->opaque, log->ring + log->layout.head,
                                  &log->head_at, &left) &&
                    left >= sizeof(log->now.head);
}

/*
 * Read the ring's structure.  Returns 1; 0 if all records were read and no
 * record was added since; -errno.
 */
static int read_ring(HtKernelLog *log)
{
    const HtKernelLogLayout *p = &log->layout;
    const HtKernelSpace *s = &log->space;
    Ring *r = &log->now;
    uint64_t ring = log->ring;
    int ret = ht_kernel_space_u64_again(s, log->prb, &ring);

    if (ret || !ring) {
        return ret ? ret : -EAGAIN;
    }
    if (ring != log->ring) {
        /* The kernel may replace its static ring by a larger one at boot. */
        log->ring = ring;
        log->placed = log->known = false;
    }
    ret = ht_kernel_space_u64_again(s, ring + p->head, &r->head);
    find_head(log);
    if (!ret && log->known && log->placed && log->id == end_of(r)) {
        return 0;
    }
    ret = ret ? ret : ht_kernel_space_u32(s, ring + p->count_bits,
                                          &r->count_bits);
    ret = ret ? ret : ht_kernel_space_u32(s, ring + p->size_bits,
                                          &r->size_bits);
    ret = ret ? ret : ht_kernel_space_u64(s, ring + p->descs, &r->descs);
    ret = ret ? ret : ht_kernel_space_u64(s, ring + p->infos, &r->infos);
    ret = ret ? ret : ht_kernel_space_u64(s, ring + p->data, &r->data);
    ret = ret ? ret : ht_kernel_space_u64(s, ring + p->tail, &r->tail);
    /*
     * Read the head after the tail: a head that was read first could be older
     * than the tail.
     */
    ret = ret ? ret : ht_kernel_space_u64(s, ring + p->head, &r->head);
    if (!ret && (r->count_bits > HT_KERNEL_LOG_BITS_MAX ||
                 r->size_bits > 2 * HT_KERNEL_LOG_BITS_MAX ||
                 r->size_bits < 4)) {
        ret = -EINVAL;
    }
    log->known = !ret;
    return ret ? ret : 1;
}

/*
 * Copy a record's text; -EAGAIN if another record has reused its space; -EINVAL
 * if the text exceeds the ring
 */
static int read_text(HtKernelLog *log, uint64_t id, const uint8_t *desc,
                     HtLogRecord *record)
{
    const Ring *r = &log->now;
    uint64_t begin = ht_get_le64(desc + log->layout.begin);
    uint64_t next = ht_get_le64(desc + log->layout.next);
    uint64_t size = UINT64_C(1) << r->size_bits, at = begin & (size - 1);
    uint64_t owner;
    int ret;

    record->text = log->text;
    if (begin & NO_TEXT) {
        record->len = 0;
        return 0;
    }
    if (begin >> r->size_bits != next >> r->size_bits && next & (size - 1)) {
        /*
         * A text that does not fit before the end of the text ring is at the
         * start of the text ring.
         */
        at = 0;
    }
    if (record->len > size - ID_BYTES || at > size - ID_BYTES - record->len) {
        return -EINVAL;
    }
    ret = ht_kernel_space_u64(&log->space, r->data + at, &owner);
    if (!ret && (owner & ID_MASK) != id) {
        ret = -EAGAIN;
    }
    return ret ? ret : ht_kernel_space_read(&log->space,
                                            r->data + at + ID_BYTES,
                                            log->text, record->len);
}

/*
 * Read the record of the descriptor @id.  Returns 1; 0 if the record is not
 * complete yet; -EAGAIN if its descriptor or its text was overwritten; -ENODATA
 * if the descriptor holds no record; -EINVAL if the text exceeds the ring; or
 * another -errno.
 */
static int read_record(HtKernelLog *log, uint64_t id, HtLogRecord *record)
{
    const HtKernelLogLayout *p = &log->layout;
    const Ring *r = &log->now;
    uint64_t index = id & ((UINT64_C(1) << r->count_bits) - 1);
    uint64_t at = r->descs + index * p->desc_size, state, after, level = 0;
    uint8_t desc[DESC_MAX], info[INFO_MAX];
    int ret = ht_kernel_space_read(&log->space, at, desc, p->desc_size);

    if (ret) {
        return ret;
    }
    state = ht_get_le64(desc + p->state);
    if ((state & ID_MASK) != id) {
        return -EAGAIN;
    }
    if (state >> STATE_SHIFT != FINAL) {
        return state >> STATE_SHIFT == REUSABLE ? -ENODATA : 0;
    }
    ret = ht_kernel_space_read(&log->space, r->infos + index * p->info_size,
                               info, p->info_size);
    if (ret) {
        return ret;
    }
    ht_btf_field_value(&p->level, info, p->info_size, &level);
    *record = (HtLogRecord) {
        .seq = ht_get_le64(info + p->seq),
        .ns = ht_get_le64(info + p->ns),
        .len = ht_get_le16(info + p->len),
        .facility = info[p->facility],
        .level = level & 7,
        .caller = ht_get_le32(info + p->caller),
    };
    /* ht_kernel_log_next() skips a record that it has returned before. */
    ret = record->seq < log->next_seq ? 0 : read_text(log, id, desc, record);
    ret = ret ? ret : ht_kernel_space_u64(&log->space, at + p->state, &after);
    return ret ? ret : after == state ? 1 : -EAGAIN;
}

/*
 * Prepare to read the next record.  If all known records were read, or the last
 * record could not be read, read the ring's structure again.  If the descriptor
 * of log->id was overwritten, continue at the oldest record.  Returns as
 * read_ring().
 */
static int update(HtKernelLog *log)
{
    const Ring *r = &log->now;
    int ret = 1;

    if (!log->known || !log->placed || log->id == end_of(r)) {
        ret = read_ring(log);
    }
    if (ret > 0 && log->placed && ((log->id - r->tail) & ID_MASK) >
        ((end_of(r) - r->tail) & ID_MASK)) {
        /* the kernel has overwritten the descriptor @log->id */
        log->placed = false;
    }
    if (ret > 0 && !log->placed) {
        log->id = r->tail & ID_MASK;
        log->placed = true;
    }
    return ret;
}

bool ht_kernel_log_hint(const HtKernelLog *log, HtKernelLogHint *hint)
{
    *hint = (HtKernelLogHint) {
        .mem = log->space.mem,
        .offset = log->head_at,
        .head = log->now.head,
    };
    return log->has_head;
}

bool ht_kernel_log_grew(const HtKernelLogHint *hint)
{
    uint64_t head;

    return !ht_ft_mem_copy(hint->mem, hint->offset, &head, sizeof(head)) &&
           ht_le64(head) != hint->head;
}

int ht_kernel_log_next(HtKernelLog *log, bool last, HtLogRecord *record)
{
    int ret = update(log);
    unsigned i;

    if (ret <= 0) {
        return ret == -EAGAIN ? 0 : ret;
    }
    for (i = 0; i < PASS_MAX && log->id != end_of(&log->now); i++) {
        ret = read_record(log, log->id, record);
        if (ret != 1) {
            /* read the ring's members again before the next record */
            log->known = false;
        }
        if (ret == 0 && !last) {
            return 0;
        }
        if (ret == -EAGAIN && !last) {
            log->placed = false;
            return 0;
        }
        if (ret < 0 && ret != -EAGAIN && ret != -ENODATA && ret != -EINVAL) {
            return ret;
        }
        log->id = (log->id + 1) & ID_MASK;
        /*
         * A larger ring that replaces another contains old records again: skip
         * these.
         */
        if (ret == 1 && record->seq >= log->next_seq) {
            log->next_seq = record->seq + 1;
            return 1;
        }
    }
    return 0;
}
