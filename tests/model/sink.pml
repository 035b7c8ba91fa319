/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of the delivery of runs to backends: host-lib/engine/dispatch.c and
 * queue.c
 *
 * A worker posts runs to two sinks, while classes are registered.  The backend
 * of sink 0 cannot block, so without TURNS the worker itself may deliver runs
 * to this backend.  With HANG, the backend of sink 1 hangs forever at its first
 * run.  With TURNS the worker is the main loop, which does not deliver runs
 * itself.  At the end of a turn it wakes the sinks that have work; in a turn it
 * wakes a sink if a post leaves that sink without a free buffer.  A section
 * under HtDispatch.lock is one atomic step.  Each run fills a buffer.
 *
 * Asserted: each sink that does not hang delivers each run once and in order,
 * or counts the run as discarded; two threads never call a backend at the same
 * time; a backend gets a run only after the classes of that run; in the end no
 * thread with work sleeps.
 */
#define SINKS   2
/*
 * Number of buffers of a sink.  The sink has "room" if at least half of its
 * buffers would still be free after one more was used.
 */
#define BUDGET  2

/* Number of published classes; a run carries the number from before its post */
byte count;

chan queue[SINKS] = [BUDGET] of { byte, byte };
byte held[SINKS];               /* number of buffers in use */
bit delivering[SINKS];          /* a run was taken but not delivered yet */
bit session[SINKS];             /* a thread holds HtSink.lock */
bit asleep[SINKS];              /* the sink's thread waits for HtSink.wake */
byte learnt[SINKS];             /* HtSink.learnt */
bit starved;                    /* HtDispatch.starved */
bit kicked;                     /* the worker was woken */

bit inside[SINKS];              /* a thread is in the backend */
byte last[SINKS];               /* the last run delivered */
byte delivered[SINKS];
byte discarded[SINKS];
bit done;

#define ANY_ROOM (held[0] + 1 <= BUDGET / 2 || held[1] + 1 <= BUDGET / 2)

inline enter(s)
{
    atomic { assert(!inside[s]); inside[s] = 1 }
}

/* As deliver() with learn_up_to() in dispatch.c */
inline deliver(s, nr, classes)
{
    enter(s);
#ifndef M_NO_LEARN
    if
    :: learnt[s] < classes -> learnt[s] = classes
    :: else
    fi;
#endif
    atomic {
        assert(classes <= learnt[s]);
        assert(nr > last[s]);
        last[s] = nr;
        delivered[s]++;
        inside[s] = 0
    }
}

/* As ht_queue_empty() */
#define EMPTY(s) (len(queue[s]) == 0 && !delivering[s])

/* As ht_dispatch_wake() for one sink */
inline wake(s)
{
    if
    :: !EMPTY(s) || learnt[s] < count -> asleep[s] = 0
    :: else
    fi
}

/* The conditions of begin_direct() in dispatch.c */
#ifdef M_DIRECT_BEFORE
#define IDLE(s) true
#else
#define IDLE(s) EMPTY(s)
#endif
#ifdef M_DIRECT_UNKNOWN
#define KNOWN(s, classes) true
#else
#define KNOWN(s, classes) (learnt[s] >= classes)
#endif
#ifdef M_DIRECT_BESIDE
#define FREE(s) true
#else
#define FREE(s) (!session[s])
#endif

#ifdef TURNS
#define DIRECT false
#define SIGNAL(s, was_empty) (held[s] == BUDGET)
#else
#define DIRECT true
#define SIGNAL(s, was_empty) was_empty
#endif

/*
 * As ht_dispatch_post() for one sink.  Sets @now if the worker must deliver the
 * run itself, which happens only for sink 0.
 */
inline post(s, nr, classes, now, was_empty)
{
    if
    :: DIRECT && s == 0 && IDLE(s) && KNOWN(s, classes) && FREE(s) ->
        session[s] = 1; now = 1
    :: else ->
        was_empty = EMPTY(s);
        if
        :: held[s] < BUDGET -> queue[s]!nr, classes; held[s]++
        :: else -> discarded[s]++
        fi;
#ifndef M_NO_SIGNAL
        if
        :: SIGNAL(s, was_empty) -> asleep[s] = 0
        :: else
        fi;
#endif
        was_empty = 0
    fi
}

/* As the end of worker_work(): with TURNS, wake the sinks that have work */
inline end_turn()
{
#if defined(TURNS) && !defined(M_TURNS_UNTOLD)
    atomic { wake(0); wake(1) }
#else
    skip
#endif
}

active proctype worker()
{
    byte nr, classes;
    bit room, now, was_empty;

    do
    :: nr == RUNS -> end_turn(); break
    :: else ->
        /* as ht_dispatch_room() */
#ifdef M_STARVED_LATE
        room = ANY_ROOM;
        atomic { starved = starved | !room }
#else
        atomic { room = ANY_ROOM; starved = starved | !room }
#endif
        if
        :: !room -> end_turn(); atomic { kicked -> kicked = 0 }
        :: else ->
            atomic { nr++; classes = count }
            atomic {
                post(0, nr, classes, now, was_empty);
                post(1, nr, classes, now, was_empty)
            }
            if
            :: now ->
                /* the worker must not call HtSinkOps.learn, which may block */
                assert(classes <= learnt[0]);
                deliver(0, nr, classes);
                atomic { session[0] = 0; now = 0 }
            :: else
            fi;
            if
            :: end_turn()
            :: skip
            fi
        fi
    od;
    done = 1
}

active [SINKS] proctype sink()
{
    byte nr, classes;
    byte s = _pid - 1;

    do
    :: atomic { !session[s] -> session[s] = 1 }
        enter(s);
        atomic { learnt[s] = count; inside[s] = 0 }
more:
        if
        :: atomic {
                nempty(queue[s]) ->
                queue[s]?nr, classes;
                delivering[s] = 1
           }
#ifdef HANG
            if
            :: s == 1 ->
end_hang:       false
            :: else
            fi;
#endif
            deliver(s, nr, classes);
            atomic {
                delivering[s] = 0;
                held[s]--;
#ifndef M_NO_ROOM
                if
                :: starved && ANY_ROOM -> starved = 0; kicked = 1
                :: else
                fi
#endif
            }
            goto more
        :: atomic {
                empty(queue[s]) ->
                session[s] = 0;
#ifdef M_SLEEP_LATE
           }
           atomic {
                asleep[s] = 1
#else
                if
                :: learnt[s] >= count -> asleep[s] = 1
                :: else
                fi
#endif
           }
        fi;
end_asleep:
        !asleep[s]
    od
}

active proctype registry()
{
    do
    :: count == CLASSES -> break
    :: else ->
        count++;
#ifndef M_NO_LEARN_SIGNAL
        atomic { wake(0); wake(1) }
#endif
    od
}

active proctype finally()
{
    timeout;
    assert(done);
    assert(delivered[0] + discarded[0] == RUNS && learnt[0] == CLASSES);
#ifndef HANG
    assert(delivered[1] + discarded[1] == RUNS && learnt[1] == CLASSES);
#endif
}
