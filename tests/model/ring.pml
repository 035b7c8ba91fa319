/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of a stream's ring: one producer (guest-lib: ht_begin(), ht_finish(),
 * switch.c) against the host's consumer (ht_consumer_ring()), in both modes
 *
 * Events are numbered and have one or two words.  A packet is a header and
 * CAPACITY words, a ring PACKETS packets.  Every load and store of shared
 * memory is a separate step.  Asserted: delivered events were committed, are
 * whole, and come in order; the host never stops the stream of this honest
 * producer; in the end delivered + dropped + lost equals the number of events
 * that the producer tried to emit.  Events that were overwritten before the
 * host read them are counted as dropped.
 *
 * -DOVERWRITE is mode=overwrite.  -DM_... selects a mutant, which lacks one
 * thing that the protocol needs; run.sh checks that spin refutes it.
 */
#ifndef EVENTS
#define EVENTS 4
#endif
#define PACKETS 2
#define CAPACITY 2
#define SIZE (CAPACITY + 1)     /* in a position, a header counts as 1 */

/* Words that the guest writes: its line of the control page, then packets */
#define HEAD 0
#define OPENING 1
#define LOST 2
#define SLOT(packet) (3 + ((packet) % PACKETS) * 5)
#define SEQ 0
#define COUNT 1                 /* number of events before the packet */
#define CONTENT 2
#define DATA 3
#define WORDS (3 + PACKETS * 5)
#include "memory.pml"

/* Words of event @n: its number and size; then its number and a 3 */
#define FIRST(n, size) (4 * (n) + (size))
#define SECOND(n) (4 * (n) + 3)

byte tail;                      /* the host's; the guest may see an old value */
byte emitted;                   /* number of committed events */
byte lost;
bool done;

/* Producer ----------------------------------------------------------------- */

byte packet, offset;            /* offset 0: no packet is open */
byte tail_seen;
byte size;
bool ok;

/* Must store the packet's content before head moves past the packet. */
inline finish_packet(content)
{
    store(SLOT(packet) + CONTENT, content)
}

inline publish(position)
{
#ifdef M_HEAD_STORE_RELAXED
    store(HEAD, position)
#else
    store_release(HEAD, position)
#endif
}

inline close_packet()
{
#ifdef M_CONTENT_LATE
    publish((packet + 1) * SIZE);
    finish_packet(offset);
#else
    finish_packet(offset);
    publish((packet + 1) * SIZE);
#endif
    d_step { packet++; offset = 0 }
}

inline write_header()
{
    store(SLOT(packet) + SEQ, packet);
    store(SLOT(packet) + COUNT, emitted);
    store(SLOT(packet) + CONTENT, 0)
}

inline open_packet()
{
#ifdef OVERWRITE
    ok = true;
#ifdef M_OPENING_LATE
    write_header();
    store(OPENING, packet);
    release_fence();
#else
    store(OPENING, packet);
#ifndef M_OPENING_NO_FENCE
    release_fence();
#endif
    write_header();
#endif
#else
#ifdef M_SPACE_LATE
    write_header();
#endif
    ok = packet - tail_seen < PACKETS;
    do
    :: !ok && tail_seen < tail ->
        tail_seen++;
        ok = packet - tail_seen < PACKETS
    :: break
    od;
#ifdef M_NO_SPACE
    ok = true;
#endif
#ifndef M_SPACE_LATE
    if
    :: ok -> write_header()
    :: else
    fi;
#endif
#endif
    if
    :: ok -> offset = 1
    :: else
    fi
}

inline write_event()
{
    store(SLOT(packet) + DATA + offset - 1, FIRST(emitted, size));
    if
    :: size == 2 -> store(SLOT(packet) + DATA + offset, SECOND(emitted))
    :: else
    fi
}

inline commit()
{
    if
    :: offset + size == SIZE ->
        /* The event fills its packet, so this commit closes the packet. */
#ifdef M_CONTENT_LATE
        publish((packet + 1) * SIZE);
        finish_packet(SIZE);
#else
        finish_packet(SIZE);
        publish((packet + 1) * SIZE);
#endif
        d_step { packet++; offset = 0 }
    :: else ->
        publish(packet * SIZE + offset + size);
        offset = offset + size
    fi;
    emitted++
}

active proctype producer()
{
    do
    :: emitted + lost < EVENTS ->
        if
        :: size = 1
        :: size = 2
        fi;
        if
        :: offset && offset + size > SIZE -> close_packet()
        :: else
        fi;
        if
        :: offset == 0 -> open_packet()
        :: else -> ok = true
        fi;
        if
        :: ok ->
#ifdef M_COMMIT_EARLY
            publish(packet * SIZE + offset + size);
#endif
            write_event();
            commit()
        :: else ->
            lost++;
            store(LOST, lost)
        fi
    :: else -> break
    od;
    atomic { size = 0; ok = false; done = true }
}

/* Consumer ----------------------------------------------------------------- */

byte cursor;
byte expected;                  /* number of the next event */
byte delivered, dropped, skipped, lost_told;
byte head, first, opening;
byte at, from, to;
byte copy[SIZE + 1];            /* SEQ, COUNT, words */
bool closed, over;

#define PACKET_OF(position) ((position) / SIZE)
#define OFFSET_OF(position) ((position) % SIZE)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

inline load_head()
{
#ifdef M_HEAD_LOAD_RELAXED
    load(HEAD, head);
#else
    load_acquire(HEAD, head);
#endif
    assert(head >= cursor);
#ifndef OVERWRITE
    assert(head - PACKET_OF(cursor) * SIZE <= PACKETS * SIZE)
#endif
}

inline oldest()
{
    load(OPENING, opening);
    d_step {
        first = MAX(PACKET_OF(MAX(head, 1) - 1), opening);
        first = (first >= PACKETS -> first - PACKETS + 1 : 0);
        opening = 0
    }
}

inline load_newer_head()
{
#ifdef M_NEWER_HEAD_RELAXED
    load(OPENING, opening);
#else
    load_acquire(OPENING, opening);
#endif
    load_head();
    /* the host stops a stream that violates this */
    assert(opening <= PACKET_OF(head) + 1);
    opening = 0
}

inline copy_slot()
{
    if
    :: from == 0 && to > 0 ->
        load(SLOT(at) + SEQ, copy[0]);
        load(SLOT(at) + COUNT, copy[1])
    :: else
    fi;
    if
    :: from <= 1 && to >= 2 -> load(SLOT(at) + DATA, copy[2])
    :: else
    fi;
    if
    :: from <= 2 && to >= 3 -> load(SLOT(at) + DATA + 1, copy[3])
    :: else
    fi
}

inline release_slot()
{
    if
    :: closed -> tail = at + 1
    :: else
    fi
}

/* As packet_begin(), then the walk over the events: both read only the copy */
inline deliver()
{
    if
    :: from == 0 ->
        assert(to >= 1 && copy[0] == at);
        assert(copy[1] >= expected &&
               copy[1] - expected <= skipped * CAPACITY);
        dropped = dropped + copy[1] - expected;
        expected = copy[1];
        skipped = 0;
        from = 1
    :: else
    fi;
    do
    :: from < to ->
        /* The copy must have the next event here, and the whole event. */
        assert(copy[from + 1] == FIRST(expected, 1) ||
               (copy[from + 1] == FIRST(expected, 2) && from + 2 <= to &&
                copy[from + 2] == SECOND(expected)));
        from = from + copy[from + 1] % 4;
        delivered++;
        expected++
    :: else -> break
    od;
    cursor = (closed -> (at + 1) * SIZE : at * SIZE + to)
}

inline forget()
{
    d_step {
        at = 0; from = 0; to = 0; closed = false; first = 0;
        copy[0] = 0; copy[1] = 0; copy[2] = 0; copy[3] = 0
    }
}

inline one_packet()
{
    d_step {
        at = PACKET_OF(cursor);
        from = OFFSET_OF(cursor);
        closed = at < PACKET_OF(head);
        to = OFFSET_OF(head)
    }
    if
    :: closed -> load(SLOT(at) + CONTENT, to)
    :: else
    fi;
#ifdef M_TAIL_EARLY
    release_slot();
#endif
    if
    :: to <= SIZE && to >= from -> copy_slot()
    :: else
    fi;
#if defined(OVERWRITE) && !defined(M_NO_SECOND_LOOK)
#ifndef M_NO_COPY_FENCE
    acquire_fence();
#endif
    oldest();
#endif
    d_step {
        if
        :: at >= first ->
            /* the host stops a stream that violates this */
            assert(to <= SIZE && to >= from);
            deliver();
            first = 0
        :: else -> first = 1    /* overwritten: do not deliver the copy */
        fi
    }
#ifndef M_TAIL_EARLY
    if
    :: first == 0 -> release_slot()
    :: else
    fi;
#endif
    forget()
}

active proctype consumer()
{
#ifdef OVERWRITE
    /*
     * In overwrite mode, no step of the producer depends on the consumer.  So
     * the model runs the producer to its end first.  The consumer's loads may
     * still return values of old stores, unless a barrier forbids it.
     */
    done;
#endif
    do
    :: !over ->
        /* The last poll is that of a close, which sees all stores. */
        if
        :: done -> atomic { synchronise(); over = true }
        :: true
        fi;
        load_head();
        do
        :: cursor < head ->
#ifdef OVERWRITE
            oldest();
            if
            :: first > PACKET_OF(head) ->
                first = 0;
                load_newer_head()
            :: first <= PACKET_OF(head) && PACKET_OF(cursor) < first ->
                d_step {
                    skipped = skipped + first - PACKET_OF(cursor);
                    cursor = first * SIZE;
                    first = 0
                }
            :: first <= PACKET_OF(head) && PACKET_OF(cursor) >= first ->
                first = 0;
                one_packet()
            fi
#else
            one_packet()
#endif
        :: else -> break
        od;
        head = 0;
#ifndef OVERWRITE
        load(LOST, lost_told)
#endif
    :: else -> break
    od;
    assert(delivered + dropped == emitted);
    assert(lost_told == lost && emitted + lost == EVENTS);
#ifndef OVERWRITE
    assert(dropped == 0)
#endif
}
