/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/** The daemon refuses to start; the message is one line: why, and what to do instead. */
public final class StartUpException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * With a message.
     *
     * @param message one line for a human
     */
    public StartUpException(final String message) {
        super(message);
    }

    /**
     * With a message and its cause.
     *
     * @param message one line for a human
     * @param cause   what went wrong below
     */
    public StartUpException(final String message, final Throwable cause) {
        super(message, cause);
    }
}
