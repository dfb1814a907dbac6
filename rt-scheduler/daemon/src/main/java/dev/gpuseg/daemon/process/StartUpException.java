/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

/**
 * The daemon refuses to start; the message is one line: why, and what to do instead. If an option of {@code gpuseg run}
 * is to blame, it names that: whoever starts the daemon again without a change gets the same answer.
 */
public final class StartUpException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String option;

    /**
     * This machine does not permit it now.
     *
     * @param message one line for a human
     */
    public StartUpException(final String message) {
        this("", message, null);
    }

    /**
     * This machine does not permit it now, with a cause.
     *
     * @param message one line for a human
     * @param cause   what went wrong below
     */
    public StartUpException(final String message, final Throwable cause) {
        this("", message, cause);
    }

    /**
     * An option is refused.
     *
     * @param option  its name, such as {@code --gpus}
     * @param message one line for a human
     * @param cause   what went wrong below, or null
     */
    public StartUpException(final String option, final String message, final Throwable cause) {
        super(message, cause);
        this.option = option;
    }

    /**
     * What to blame.
     *
     * @return an option of {@code gpuseg run}, such as {@code --gpus}; empty if none is
     */
    public String option() {
        return option;
    }
}
