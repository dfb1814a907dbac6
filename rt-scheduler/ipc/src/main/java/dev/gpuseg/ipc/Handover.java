/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/**
 * A current object, its successor and its predecessor, passed between the thread that uses them and the thread that
 * makes and destroys them. Neither thread waits for the other.
 *
 * <pre>
 *   maker   offer(b)                    b is complete
 *   user    advance()                   a -> b; a may be destroyed from now on
 *   maker   retired() ... reclaimed()   a is destroyed
 * </pre>
 *
 * <p>{@link #current} never returns to the maker what {@link #retired} returned to it before.
 *
 * @param <T> the objects
 */
final class Handover<T> {
    private volatile T current;
    private volatile T next;
    private volatile T retired;

    Handover(final T first) {
        current = first;
    }

    /** The object in use. Any thread. */
    T current() {
        return current;
    }

    /** The successor, null if it is not made yet. Any thread. */
    T next() {
        return next;
    }

    /** The predecessor, if it is not reclaimed yet, or null. Maker's thread. */
    T retired() {
        return retired;
    }

    /** Passes a complete successor. Maker's thread; only while {@link #next} is null. */
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

    /** Makes the successor the current object. User's thread. */
    T advance() {
        final T left = current;
        final T entered = next;
        current = entered;
        next = null;
        retired = left; // last: the maker destroys it at once, and must not see it as the current one
        return entered;
    }
}
