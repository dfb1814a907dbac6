/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Pointer;
import java.util.Optional;

/** Names of the users of this machine, wherever it keeps them: getpwuid(3). Thread-safe. */
public final class UserNames {
    private UserNames() {
    }

    /**
     * The name of a user.
     *
     * @param uid the user
     * @return empty if this machine has no such user
     */
    public static synchronized Optional<String> of(final int uid) {
        final Pointer entry = LibC.getpwuid(uid);
        // struct passwd begins with pw_name; the next call overwrites it
        return entry == null ? Optional.empty() : Optional.of(PlainText.of(entry.getPointer(0).getString(0)));
    }
}
