/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.ipc.platform.PlainText;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.IntFunction;

/**
 * The user who started this process as root through sudo, which says so in {@code SUDO_UID}. Who may do that is root's
 * equal. {@code SUDO_GID} is not looked at: a group can have members who may not use sudo.
 *
 * @param uid  the user, never root
 * @param name of the user
 */
record SudoCaller(int uid, String name) {
    private static final String VARIABLE = "SUDO_UID";
    private static final String NUMBER = "[1-9][0-9]{0,9}";
    /** The last number means no user. */
    private static final long MOST = 0xffff_fffeL;

    /**
     * Who it is.
     *
     * @param environment of this process
     * @param realUid     of this process: where it is not root's, the variable can be anybody's
     * @param names       of the users of this machine
     * @param log         takes one line if the variable says nonsense
     * @return empty if this process was not started so, or by root
     */
    static Optional<SudoCaller> of(final Map<String, String> environment, final int realUid,
        final IntFunction<Optional<String>> names, final Consumer<String> log) {
        final String said = environment.getOrDefault(VARIABLE, "");
        if (realUid != 0 || said.isEmpty() || said.equals("0")) {
            return Optional.empty();
        }
        if (!said.matches(NUMBER) || Long.parseLong(said) > MOST) {
            log.accept(VARIABLE + " is \"" + PlainText.of(said) + "\", which is no number of a user; " + notServed());
            return Optional.empty();
        }
        final int uid = Integer.parseUnsignedInt(said);
        final Optional<SudoCaller> caller = names.apply(uid).map(name -> new SudoCaller(uid, name));
        if (caller.isEmpty()) {
            log.accept(VARIABLE + " is " + said + ", and this machine has no such user; " + notServed());
        }
        return caller;
    }

    private static String notServed() {
        return "no user is served for it: unset it, or start the daemon with sudo";
    }
}
