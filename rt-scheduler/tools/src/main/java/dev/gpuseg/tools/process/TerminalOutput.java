/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * What standard output is, and what may be written to it.
 *
 * @param terminal a person looks at it: a line may be written again and again
 * @param colour   colours may be used
 */
public record TerminalOutput(boolean terminal, boolean colour) {
    /** Neither of it: a file, a pipe, a test. */
    public static final TerminalOutput PLAIN = new TerminalOutput(false, false);

    private static final Path STANDARD_OUTPUT = Path.of("/proc/self/fd/1");
    private static final String END = "\033[0m";

    /**
     * Asks the system. Newer JDKs have a console where output is a pipe, so {@code System.console()} does not tell.
     * Returns standard output of this process.
     */
    public static TerminalOutput ofThisProcess() {
        String target = "";
        try {
            target = Files.readSymbolicLink(STANDARD_OUTPUT).toString();
        } catch (final IOException e) {
            return PLAIN;   // closed, or no /proc: whatever it is, it is not known to be a terminal
        }
        return of(target, System.getenv());
    }

    static TerminalOutput of(final String target, final Map<String, String> environment) {
        final boolean terminal = (target.startsWith("/dev/pts/") || target.startsWith("/dev/tty")
            || target.equals("/dev/console")) && !"dumb".equals(environment.get("TERM"));
        return new TerminalOutput(terminal, terminal && environment.getOrDefault("NO_COLOR", "").isEmpty());
    }

    /** For what is wrong. */
    public String red(final String text) {
        return styled("1;31", text);
    }

    /** For what is right. */
    public String green(final String text) {
        return styled("32", text);
    }

    private String styled(final String code, final String text) {
        return colour ? "\033[" + code + "m" + text + END : text;
    }

    /** Goes to the begin of the current line and clears it; nothing where lines cannot be written again. */
    public String clearLine() {
        return terminal ? "\r\033[K" : "";
    }
}
