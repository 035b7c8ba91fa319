/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of memory that one side writes and the other reads, by the rules of C11
 *
 * All stores of the writer are kept, in its program order.  A load of a word
 * may return the initial 0 or any value that was stored to the word, except
 * values older than the last one that the reader got from this word, and values
 * older than a store that the reader must see by now:
 *
 *   a release store publishes itself and all stores before it,
 *   a relaxed store publishes those before the writer's last release fence,
 *   after an acquire load, the reader must see what the loaded store published,
 *   after an acquire fence, the reader must see what the stores published that
 *   its earlier loads have loaded.
 *
 * So the reader may see stores, and may execute loads, in another order, unless
 * a barrier forbids it.  This order is weaker than that of x86 and covers Arm,
 * with one exception: the model never makes a store of a thread visible before
 * that thread has executed its earlier loads.  Where that would matter, a
 * mutant executes the store before the load.
 */
#ifndef LOG
#define LOG 48
#endif

byte log_value[LOG];
byte log_tells[LOG];            /* this store publishes stores up to this index */
byte log_next[LOG];             /* index of the next store to the word; 0: none */
byte log_end = 1;
/* indexes in the log; 0: there is no store, and the word is 0 */
byte first_store[WORDS], last_store[WORDS];
byte fenced;                    /* index of the last store before the last release fence */

byte seen[WORDS];               /* index of the store that the reader last read */
byte told;                      /* the reader must see stores up to this index */
byte told_by_fence;             /* an acquire fence raises "told" to this index */
byte m;                         /* temporary index */

inline store_telling(word, value, tells)
{
    d_step {
        assert(log_end < LOG);
        log_value[log_end] = value;
        log_tells[log_end] = tells;
        if
        :: last_store[word] -> log_next[last_store[word]] = log_end
        :: else -> first_store[word] = log_end
        fi;
        last_store[word] = log_end;
        log_end++
    }
}

inline store(word, value)
{
    store_telling(word, value, fenced)
}

inline store_release(word, value)
{
    store_telling(word, value, log_end)
}

inline release_fence()
{
    d_step { fenced = log_end - 1 }
}

#define NEXT(word) (m -> log_next[m] : first_store[word])

inline load_telling(word, to)
{
    m = seen[word];
    do
    :: NEXT(word) -> m = NEXT(word)
    :: NEXT(word) == 0 || NEXT(word) > told -> break
    od;
    seen[word] = m;
    to = (m -> log_value[m] : 0);
    told_by_fence = (m && log_tells[m] > told_by_fence -> log_tells[m] :
                     told_by_fence)
}

inline load(word, to)
{
    atomic { load_telling(word, to); m = 0 }
}

inline load_acquire(word, to)
{
    atomic {
        load_telling(word, to);
        told = (m && log_tells[m] > told -> log_tells[m] : told);
        m = 0
    }
}

inline acquire_fence()
{
    d_step { told = (told_by_fence > told -> told_by_fence : told) }
}

/* A control message (an exit and a lock): the reader now sees all stores */
inline synchronise()
{
    d_step { told = log_end - 1 }
}
