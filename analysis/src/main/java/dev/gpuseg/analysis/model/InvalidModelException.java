/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/** A value that the task model does not allow. The message is one line: thing, value, remedy. */
public final class InvalidModelException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param message one line: thing, value, remedy
     */
    public InvalidModelException(final String message) {
        super(message);
    }
}
