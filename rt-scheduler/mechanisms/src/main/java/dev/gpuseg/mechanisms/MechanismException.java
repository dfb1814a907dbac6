/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/** A mechanism cannot do what was requested. The message is one line: thing, value, remedy. */
public final class MechanismException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * With a message.
     *
     * @param message one line for a human
     */
    public MechanismException(final String message) {
        super(message);
    }

    /**
     * With a message and its cause.
     *
     * @param message one line for a human
     * @param cause   what went wrong below
     */
    public MechanismException(final String message, final Throwable cause) {
        super(message, cause);
    }
}
