/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of waking the consumer of channel=shm: no closed packet waits forever
 * while the consumer sleeps, and with -DTIMER no event does
 *
 * The producer is ht_finish() and close_packet() with
 * guest-lib/src/channel-shm.c; the consumer is the IOThread of
 * hw/hypertrace/worker.c and ring.c with ht_consumer_arm(): doorbell, timer and
 * polling.  A processor can load before its earlier stores are visible, so each
 * side has a store buffer, which drains at any time.  The buffer must be empty
 * after a full fence, and the producer's also before it rings the doorbell.
 *
 * Without -DTIMER there is no timer, and only the close of a packet must wake
 * the consumer.  With -DTIMER every commit is consumed in the end, although the
 * timer stops while the device is idle.  The model assumes that a store becomes
 * visible in less than the time between two ticks of the timer.  -DRINGS checks
 * at each doorbell that the producer has not rung more often than the consumer
 * has armed the wake word.
 *
 * -DM_... selects a mutant; run.sh checks that spin refutes it.
 */
#ifndef COMMITS
#define COMMITS 3
#endif
#define PACKET 2                /* commits that fill a packet */
#define NEVER 255
#define PACKET_OF(position) ((position) / PACKET)

byte head, head_buffered;       /* 0: nothing is buffered */
byte wake = NEVER, wake_buffered;
bool old;                       /* head was in the buffer when the timer started */
/* Event notifier; initially set, because opening a stream starts a turn */
bool doorbell = true;
bool done;

#ifdef RINGS
byte may_ring;                  /* armings minus doorbells, at most 9 */
#define count_arming() may_ring = (may_ring < 9 -> may_ring + 1 : 9)
#define count_ring() assert(may_ring); may_ring--
#else
#define count_arming() skip
#define count_ring() skip
#endif

active proctype buffers()
{
end:
    do
    :: d_step {
           head_buffered ->
           head = head_buffered;
           head_buffered = 0;
           old = false
       }
    :: d_step {
           wake_buffered ->
           wake = wake_buffered;
           wake_buffered = 0
       }
    od
}

/* Producer ----------------------------------------------------------------- */

byte position;
byte rung = NEVER, armed;

inline notify()
{
    armed = wake;
#ifdef M_RINGS_AGAIN
    if
    :: position >= armed ->
#else
    if
    :: position >= armed && armed != rung ->
#endif
        rung = armed;
        /* a write to the device, which drains the store buffer first */
        head_buffered == 0;
#ifndef M_NO_DOORBELL
        d_step { count_ring(); doorbell = true }
#endif
    :: else
    fi;
    armed = 0
}

inline store_head()
{
    d_step {
        if
        :: old -> head = head_buffered; old = false
        :: else
        fi;
        head_buffered = position
    }
}

/* As ht_finish(): no barrier between the store of head and the load of wake */
inline commit()
{
    position++;
#ifdef M_WAKE_BEFORE_HEAD
    notify();
    store_head()
#else
    store_head();
    notify()
#endif
}

inline close_packet()
{
    position = (PACKET_OF(position) + 1) * PACKET;
    store_head();
#ifndef M_CLOSE_NO_FENCE
    head_buffered == 0;
#endif
    notify()
}

active proctype producer()
{
    byte commits;

    do
    :: commits < COMMITS -> commits++; commit()
    :: commits && position % PACKET -> close_packet()
    :: commits == COMMITS -> break
    od;
#ifndef TIMER
    /* Close the last packet: no timer finds the events of an open packet. */
    if
    :: position % PACKET -> close_packet()
    :: else -> commit(); close_packet()
    fi;
#endif
    done = true
}

/*
 * Consumer: the IOThread ----------------------------------------------------
 */

byte cursor;
byte quiet;
bool progress = true, before, eager, timer, polling;
bool again;                     /* the last turn left work for another turn */

/*
 * Start the timer.  If head is in the store buffer now, "old" makes it visible
 * before the timer fires.
 */
inline start_timer()
{
#ifdef TIMER
#ifdef M_TIMER_STOPS_EARLY
    if
    :: d_step { quiet < 1 && !timer -> timer = true; old = head_buffered > 0 }
#else
    if
    :: d_step { quiet < 2 && !timer -> timer = true; old = head_buffered > 0 }
#endif
    :: else
    fi
#else
    skip
#endif
}

inline work()
{
    again = false;
    do
    :: cursor != head ->
        progress = true;
        cursor = head;
        if
        :: PACKET_OF(head) == PACKET_OF(cursor) -> break
        :: else
        fi
    :: cursor != head ->
        /* or the turn ends after one packet */
        progress = true;
        cursor = (PACKET_OF(head) == PACKET_OF(cursor) -> head :
                  (PACKET_OF(cursor) + 1) * PACKET);
        again = true;
#ifndef M_AGAIN_UNTOLD
        doorbell = true;
#endif
        break
    :: else -> break
    od;
    if
    :: progress -> quiet = 0; eager = false; start_timer()
    :: else
    fi
}

inline arm_wake()
{
    d_step {
        wake_buffered = (eager -> cursor + 1 :
                         (PACKET_OF(cursor) + 1) * PACKET);
        count_arming()
    }
#ifndef M_ARM_NO_FENCE
    wake_buffered == 0;
#endif
#ifndef M_NO_LAST_LOOK
    if
    :: eager && head != cursor -> doorbell = true
    :: !eager && PACKET_OF(head) != PACKET_OF(cursor) -> doorbell = true
    :: else
    fi
#endif
}

inline arm()
{
    if
    :: !again -> arm_wake()
    :: else -> wake_buffered = NEVER
    fi
}

active proctype consumer()
{
end:
    do
    :: doorbell ->
#ifndef M_CLEARS_LATE
        doorbell = false;
#endif
        work();
        if
        :: !polling -> arm()
        :: else
        fi;
#ifdef M_CLEARS_LATE
        doorbell = false
#endif
    :: timer ->
        d_step {
            timer = false;
            if
            :: old -> head = head_buffered; head_buffered = 0; old = false
            :: else
            fi
        }
        before = progress;
        progress = false;
        work();
        d_step {
            quiet = (before || progress -> 0 : quiet + 1);
            before = false;
#ifdef M_TIMER_NEVER_EAGER
            eager = false
#else
            eager = quiet >= 1
#endif
        }
#ifdef M_TIMER_BEFORE_ARM
        start_timer();
#endif
        if
        :: !polling -> arm()
        :: else
        fi;
#ifndef M_TIMER_BEFORE_ARM
        start_timer()
#endif
    /* in this model, polling begins only while the producer runs */
    :: !polling && !done && wake_buffered == 0 ->
        polling = true;
        wake_buffered = NEVER;
    :: polling && head != cursor -> work()
    :: polling ->
        polling = false;
#ifndef M_POLL_ENDS_UNARMED
        arm();
#endif
#ifndef M_TIMER_POLL_ENDS_QUIET
        quiet = 0;
        start_timer()
#endif
    od
}

init {
    timeout;
    /* If all processes sleep, no work is pending. */
    assert(done && !doorbell && !timer && !head_buffered);
#ifdef TIMER
    assert(cursor == head);
#else
    assert(PACKET_OF(cursor) == PACKET_OF(head));
#endif
}
