/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/**
 * A command run within this process.
 *
 * @param status exit status
 * @param out    standard output
 * @param err    standard error
 */
record StringOutput(int status, String out, String err) {
    static StringOutput of(final String... arguments) {
        final StringWriter out = new StringWriter();
        final StringWriter err = new StringWriter();
        final CommandLine line = Gpuseg.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        final int status = line.execute(arguments);
        return new StringOutput(status, out.toString(), err.toString());
    }

    String text() {
        return out + err;
    }
}
