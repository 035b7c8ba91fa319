/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * STREAM_FLUSH, STREAM_CLOSE and closing by a reset or another driver: events
 * committed before are delivered, and the final count of losses is reported
 *
 * The vCPU emits and executes control messages (host-lib/engine/streams.c, with
 * the BQL); the IOThread is ht_streams_turn() of streams.c, with work().
 * -DVIRTIO: there is no ring from which to read the final count.  The
 * IOThread's words for the vCPU are plain variables here; mutants swap their
 * order. -DM_... are mutants; run.sh ensures that none passes.
 */
#define HEAD 0
#define FLUSH_WANTED 1
#define WANT_CLOSE 2
#define CLOSE_LOST 3
#define LOST 4                  /* in the ring's line of the guest */
#define WORDS 5
#include "memory.pml"

#define STEPS 5

bool doorbell;                  /* the event notifier */
byte doorbell_tells;
bool open = true;
byte flush_done;
byte delivered, lost_told;

#ifdef M_RELAXED
#define store_ordered(word, value) store(word, value)
#else
#define store_ordered(word, value) store_release(word, value)
#endif
#ifdef M_LOADS_RELAXED
#define load_ordered(word, to) load(word, to)
#else
#define load_ordered(word, to) load_acquire(word, to)
#endif

/* A write to a file descriptor, and the read that returns it, are ordered */
inline kick()
{
    d_step { doorbell = true; doorbell_tells = log_end - 1 }
}

inline clear()
{
    d_step {
        doorbell = false;
        told = (doorbell_tells > told -> doorbell_tells : told)
    }
}

/* vCPU --------------------------------------------------------------------- */

byte position, lost, wanted;

inline flush()
{
    wanted++;
#ifdef M_KICK_EARLY
    kick();
    store_ordered(FLUSH_WANTED, wanted);
#else
    store_ordered(FLUSH_WANTED, wanted);
    kick();
#endif
    flush_done == wanted;
    assert(delivered == position)
}

inline close(final)
{
#ifdef M_LOST_LATE
    store_ordered(WANT_CLOSE, 1);
    store(CLOSE_LOST, final);
#else
    store(CLOSE_LOST, final);
    store_ordered(WANT_CLOSE, 1);
#endif
    kick();
    !open;
    assert(delivered == position && lost_told == lost)
}

active proctype vcpu()
{
    byte steps;

    do
    :: steps < STEPS ->
        steps++;
        if
        :: position++; store_release(HEAD, position)
        :: lost++; store(LOST, lost)
        :: flush()
        /* events ring no doorbell here: the IOThread may poll on its own */
        :: kick()
        fi
    :: break
    od;
    if
    :: close(lost)
#ifndef VIRTIO
    :: close(0)                 /* a reset knows no count; the ring has it */
#endif
    fi
}

/* IOThread ----------------------------------------------------------------- */

byte flush_loaded, flush_next, now, told_lost;
bool want_close, progress;

inline consume()
{
    load_acquire(HEAD, now);
    d_step {
        progress = progress || now != delivered;
        delivered = now;
        now = 0
    }
}

inline stream_work()
{
#ifdef M_WISH_LATE
    consume();
    load_ordered(WANT_CLOSE, want_close);
#else
    load_ordered(WANT_CLOSE, want_close);
#ifdef M_FREE_EARLY
    open = !want_close;
#endif
    consume();
#endif
    if
    :: want_close ->
        load(CLOSE_LOST, lost_told);
#ifndef VIRTIO
        load(LOST, told_lost);
#endif
        d_step {
            lost_told = (told_lost > lost_told -> told_lost : lost_told);
            told_lost = 0
        }
        open = false
    :: else
    fi
}

active proctype iothread()
{
end:
    do
    :: open && doorbell ->
        clear();
#ifndef M_FLUSH_READ_LATE
        load_ordered(FLUSH_WANTED, flush_loaded);
#endif
        if
        :: flush_next == flush_done -> flush_next = flush_loaded
        :: else
        fi;
#ifdef M_FLUSH_DONE_EARLY
        flush_done = flush_next;
#endif
        do
        :: open ->
            progress = false;
            stream_work();
            if
            :: !progress -> break
            /* only the end of a packet continues the turn */
            :: progress && flush_next == flush_done -> break
            :: progress
            fi
        :: else -> break
        od;
#ifdef M_FLUSH_READ_LATE
        load_ordered(FLUSH_WANTED, flush_loaded);
#endif
        flush_next = flush_loaded;
        flush_done = flush_next
    od
}
