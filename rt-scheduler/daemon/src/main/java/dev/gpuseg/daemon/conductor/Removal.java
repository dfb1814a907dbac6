/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/** Why a client is removed. */
public final class Removal {
    /** It closed its socket. */
    public static final int CLOSED = 1;
    /** Its process died. */
    public static final int DIED = 2;
    /**
     * It broke the rules. If the dispatcher has not poisoned its session itself, the offence was on the socket and the
     * dispatcher calls {@code session.poison(Abi.POISON_PROTOCOL)}.
     */
    public static final int POISONED = 3;
    /** The daemon stops. */
    public static final int STOPPING = 4;

    private Removal() {
    }
}
