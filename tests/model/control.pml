/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of STREAM_FLUSH, STREAM_CLOSE and closing by a reset or another driver:
 * events committed before a flush or close are delivered before it is done, and
 * a close reports the final count of lost events
 *
 * The vCPU emits events and executes control messages (with the BQL).  The
 * IOThread executes ht_streams_turn(), which calls work() for each stream; the
 * model has one stream.  The host's code of both threads is
 * host-lib/engine/streams.c.  With -DVIRTIO the host cannot read the final
 * count from a ring, and the model has no close without the count.  Words that
 * the IOThread writes for the vCPU are plain variables in this model; two
 * mutants store them too early.  -DM_... selects a mutant; run.sh checks that
 * spin refutes each.
 */
#define HEAD 0
#define FLUSH_WANTED 1
#define WANT_CLOSE 2
#define CLOSE_LOST 3
#define LOST 4                  /* number of lost events, stored by the guest */
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

/*
 * Write the event notifier. Once the IOThread has cleared it, the IOThread sees
 * all stores that the vCPU made before this write.
 */
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
        /*
         * In this model events ring no doorbell: instead, write the event
         * notifier in any step, so that the IOThread takes a turn.
         */
        :: kick()
        fi
    :: break
    od;
    if
    :: close(lost)
#ifndef VIRTIO
    :: close(0)                 /* reset or takeover: only LOST has the count */
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
            /* no flush is pending: the turn may end after progress */
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
