/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import dev.gpuseg.daemon.launch.DaemonMain;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM that has loaded the classes of a daemon and waits to be told which command of {@code gpuseg-daemon} to run: one
 * argument a line on its standard input, then an empty line. It ends when that input ends before.
 */
public final class Standby {
    /** What it prints when it waits. */
    public static final String READY = "standing by";

    private Standby() {
    }

    /**
     * Loads, waits, runs.
     *
     * @param arguments a file with names of classes, one a line, as {@code -Xlog:class+load} writes them; it may be
     *                  missing
     * @throws IOException if the file or the input cannot be read
     */
    public static void main(final String[] arguments) throws IOException {
        load(Path.of(arguments[0]));
        System.out.println(READY);
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final List<String> command = new ArrayList<>();
        for (String line = in.readLine(); line == null || !line.isEmpty(); line = in.readLine()) {
            if (line == null) {
                return;   // nobody needs it
            }
            command.add(line);
        }
        DaemonMain.main(command.toArray(new String[0]));
    }

    private static void load(final Path names) throws IOException {
        if (!Files.exists(names)) {
            return;
        }
        for (final String line : Files.readAllLines(names)) {
            final String name = line.split(" ", 2)[0];
            try {
                Class.forName(name, false, ClassLoader.getSystemClassLoader());
            } catch (final ClassNotFoundException | LinkageError e) {
                continue;   // made while that JVM ran, or half written: the daemon finds its own
            }
        }
    }
}
