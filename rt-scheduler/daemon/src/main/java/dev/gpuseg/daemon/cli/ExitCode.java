/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

/** Exit status of every command. */
final class ExitCode {
    /** Done, or: yes. */
    static final int OK = 0;
    /** It failed. */
    static final int FAILURE = 1;
    /** The command was not understood. */
    static final int USAGE = 2;
    /** It worked, and the answer is no. */
    static final int NO = 3;

    private ExitCode() {
    }
}
