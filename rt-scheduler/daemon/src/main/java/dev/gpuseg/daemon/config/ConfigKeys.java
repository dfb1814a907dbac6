/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.config;

import java.util.SortedSet;

/** Which keys a settings file may have. The daemon's command line is the only list; this is its view for the reader. */
public interface ConfigKeys {
    /** All keys: their names, for instance "queue-size". */
    SortedSet<String> all();

    /**
     * Whether the value of a key is a mapping of its own, not a section.
     *
     * @param key one of {@link #all}
     * @return true if {@code key: {a: 1}} gives it the value {@code a=1}
     */
    boolean takesMapping(String key);

    /**
     * Whether a key may have several values.
     *
     * @param key one of {@link #all}
     * @return true if a list is allowed
     */
    boolean takesList(String key);
}
