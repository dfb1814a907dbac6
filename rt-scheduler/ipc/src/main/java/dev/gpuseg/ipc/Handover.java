/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/**
 * A current thing, its successor and its predecessor, passed between the thread that uses them and the thread that
 * makes and destroys them. Neither waits for the other.
 *
 * <pre>
 *   maker   offer(b)                    b is complete
 *   user    advance()                   a -> b; a may be destroyed from now on
 *   maker   retired() ... reclaimed()   a is destroyed
 * </pre>
 *
 * <p>What {@link #current} returns to the maker is never something that it has taken from {@link #retired} before.
 *
 * @param <T> what is passed
 */
final class Handover<T> {
    private volatile T current;
    private volatile T next;
    private volatile T retired;

    Handover(final T first) {
        current = first;
    }

    /** What is used now. Any thread. */
    T current() {
        return current;
    }

    /** What will be used next, null if it is not made yet. Any thread. */
    T next() {
        return next;
    }

    /** What is not used any more and not reclaimed yet, or null. Maker's thread. */
    T retired() {
        return retired;
    }

    /** Something is complete. Maker's thread; only while {@link #next} is null. */
    void offer(final T made) {
        next = made;
    }

    /** What {@link #retired} returned is destroyed. Maker's thread. */
    void reclaimed() {
        retired = null;
    }

    /** Whether {@link #advance} is allowed: the next is there, and the one before has been reclaimed. User's thread. */
    boolean canAdvance() {
        return next != null && retired == null;
    }

    /** Goes over to the next. User's thread. */
    T advance() {
        final T left = current;
        final T entered = next;
        current = entered;
        next = null;
        retired = left; // last: the maker destroys it at once, and must not find it as the current one
        return entered;
    }
}
