/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.command;

/** Exit status of every command. */
public final class ExitCode {
    /** Done, or: yes. */
    public static final int OK = 0;
    /** It failed. */
    public static final int FAILURE = 1;
    /** The command was not understood. */
    public static final int USAGE = 2;
    /** It worked, and the answer is no. */
    public static final int NO = 3;

    private ExitCode() {
    }
}
