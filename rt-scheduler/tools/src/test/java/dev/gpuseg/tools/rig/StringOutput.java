/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import dev.gpuseg.tools.cli.Gpuseg;
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
public record StringOutput(int status, String out, String err) {
    public static StringOutput of(final String... arguments) {
        final StringWriter out = new StringWriter();
        final StringWriter err = new StringWriter();
        final CommandLine line = Gpuseg.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        final int status = line.execute(arguments);
        return new StringOutput(status, out.toString(), err.toString());
    }

    public String text() {
        return out + err;
    }
}
