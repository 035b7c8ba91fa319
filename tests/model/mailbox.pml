/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of the mailbox of the memory-only transport: a reply that the guest
 * accepts is the whole reply to its request, and each request is executed at
 * most once, by the host to which the guest sent it (named by its epoch)
 *
 * The guest is guest-lib/src/memory.c, the host ht_memory_start() and
 * serve_mailbox() of host-lib/engine/memory.c.  Each host except the last can
 * be killed between any two of its stores; this frees a lock, and the next host
 * begins.  The guest can be reset up to RESETS times, at several points between
 * its stores.  In the model each side sees the other's stores at once and in
 * their order: the code uses release stores and acquire loads where the order
 * matters.  -DM_... selects a mutant; run.sh checks that spin refutes it.
 */
#ifndef HOSTS
#define HOSTS 3
#endif
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef RESETS
#define RESETS 1
#endif

byte go, to, request_begin, request_end;        /* words of the guest */
/* words of the hosts; the guest clears reply_begin and reply_end */
byte epoch, done, reply_begin, reply_end;
byte alive;                     /* host that has the lock; 0: none */
byte beats;                     /* host that advances the beat; 0: none */
byte sent_to[REQUESTS + 1];
bool executed[REQUESTS + 1];

/* Host --------------------------------------------------------------------- */

#define MAY_DIE(me) if :: true :: (me) < HOSTS -> goto dead fi

#ifdef M_ANY_EPOCH
#define FOR_ME(me) (true)
#else
#define FOR_ME(me) (to == me)
#endif

proctype host(byte me)
{
    byte my_done, g, r;

    my_done = go;
    MAY_DIE(me);
#ifdef M_DONE_FIRST
    done = my_done;
    MAY_DIE(me);
    epoch = me;
#else
    epoch = me;
    MAY_DIE(me);
    done = my_done;
#endif
    MAY_DIE(me);
    beats = me;
end:
    do
    :: go != my_done ->
        g = go;
        if
        :: FOR_ME(me) ->
            r = request_begin;
            MAY_DIE(me);
            assert(r == request_end && sent_to[r] == me && !executed[r]);
            executed[r] = true;
            reply_begin = r;
            MAY_DIE(me);
            reply_end = r;
            MAY_DIE(me);
            assert(reply_begin == r && reply_end == r)
        :: !FOR_ME(me)
        fi;
        my_done = g;
        done = g;
        MAY_DIE(me)
    :: me < HOSTS -> goto dead
    od;
dead:
    beats = 0;
    alive = 0
}

/* A lock of the memory's file lets only one host serve at a time. */
active proctype hosts()
{
    byte next = 1;

end:
    do
    :: alive == 0 && next <= HOSTS ->
        alive = next;
        run host(next);
        next++
    od
}

/* Guest -------------------------------------------------------------------- */

byte my_epoch, mine, resets;
bool pending;

#define RENEWED (epoch != my_epoch)
#define MAY_RESET if :: true :: resets < RESETS -> goto reset fi

/*
 * Wait until done == go; give up, that is go to the label @otherwise, if the
 * epoch has changed.  The real guest also gives up if done != go and the beat
 * has not advanced for some time, or after a time limit.  The guest of this
 * model may give up at any step in which done != go and the host that it
 * attached to has no beat; it has no time limit.
 */
#ifdef M_EPOCH_FIRST
#define AWAIT(otherwise) \
    do \
    :: RENEWED -> goto otherwise \
    :: !RENEWED -> \
        MAY_RESET; \
        if \
        :: done == go -> break \
        :: done != go -> if :: true :: beats != my_epoch -> goto otherwise fi \
        fi \
    od
#else
#define AWAIT(otherwise) \
    do \
    :: done == go -> \
        MAY_RESET; \
        if \
        :: RENEWED -> goto otherwise \
        :: else -> break \
        fi \
    :: done != go && (RENEWED || beats != my_epoch) -> goto otherwise \
    od
#endif

active proctype guest()
{
    byte id = 1;

attach:
    if
    :: beats != 0 && epoch != 0 ->
        my_epoch = epoch;
        pending = false
    fi;
next:
    MAY_RESET;
    if
    :: id > REQUESTS -> goto over
    :: else
    fi;
#ifndef M_NOT_PENDING
    if
    :: pending && RENEWED -> goto attach
    :: pending && !RENEWED && done != go -> goto absent
    :: else
    fi;
    AWAIT(absent);
#endif
    mine = id;
    id++;
    request_begin = mine;
    MAY_RESET;
    request_end = mine;
    reply_begin = 0;
    reply_end = 0;
    MAY_RESET;
    to = my_epoch;
    MAY_RESET;
    pending = true;
    sent_to[mine] = my_epoch;
    go = done + 1;
    MAY_RESET;
    AWAIT(absent);
    /* The host is done: its reply must be whole, and to this request. */
    assert(reply_begin == mine && reply_end == mine);
    pending = false;
    goto next;

absent:
    if
    :: RENEWED -> goto attach
    :: beats == my_epoch && !RENEWED -> goto next
    fi;

reset:
    resets++;
    pending = false;
    goto attach;
over:
    skip
}
