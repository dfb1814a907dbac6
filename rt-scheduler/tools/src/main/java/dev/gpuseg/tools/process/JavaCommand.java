/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import dev.gpuseg.daemon.launch.DaemonMain;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Command lines of further JVMs like this one: the same java, options and class path. */
public final class JavaCommand {
    private static final List<String> SMALL = List.of("-XX:+UseSerialGC", "-Xms96m", "-Xmx96m");

    private JavaCommand() {
    }

    /**
     * {@code gpuseg run} as the launchers start it, with the JVM options of {@code config/daemon.jvm}; if this JVM was
     * given a collector, with that one.
     *
     * @param options of {@code gpuseg run}
     * @return the command line, which may be changed
     */
    public static List<String> daemon(final List<String> options) {
        final List<String> command = jvm(daemonOptions());
        command.addAll(List.of(DaemonMain.class.getName(), "run"));
        command.addAll(options);
        return command;
    }

    /** The command line of {@code gpuseg run} as the launchers start it; it may be changed. */
    public static List<String> daemon(final String... options) {
        return daemon(Arrays.asList(options));
    }

    /** {@code gpuseg-daemon release}: enables what a dead daemon holds. The command line may be changed. */
    public static List<String> release(final String... options) {
        final List<String> command = jvm(SMALL);
        command.addAll(List.of(DaemonMain.class.getName(), "release"));
        command.addAll(Arrays.asList(options));
        return command;
    }

    /**
     * A JVM like a daemon's that waits for a command of {@code gpuseg-daemon}: {@link Standby}.
     *
     * @param classes file with the names of classes to load before
     * @return the command line, which may be changed
     */
    public static List<String> standby(final Path classes) {
        final List<String> command = jvm(daemonOptions());
        command.addAll(List.of(Standby.class.getName(), classes.toString()));
        return command;
    }

    /** The command line of another main class, with a small heap; it may be changed. */
    public static List<String> of(final Class<?> main, final List<String> arguments) {
        final List<String> command = jvm(SMALL);
        command.add(main.getName());
        command.addAll(arguments);
        return command;
    }

    /** Java, the options of this JVM, more options without the collector if this JVM was given one, the class path. */
    private static List<String> jvm(final List<String> options) {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        final List<String> own = ManagementFactory.getRuntimeMXBean().getInputArguments().stream().filter(flag ->
            !flag.startsWith("-agentlib") && !flag.startsWith("-javaagent") && !flag.startsWith("-Xm")).toList();
        command.addAll(own);
        final boolean chosen = own.stream().anyMatch(JavaCommand::choosesCollector);
        options.stream().filter(option -> !chosen || !choosesCollector(option)).forEach(command::add);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        return command;
    }

    private static boolean choosesCollector(final String option) {
        return option.startsWith("-XX:+Use") && option.endsWith("GC");
    }

    /** The options of the daemon's JVM. */
    private static List<String> daemonOptions() {
        final Path file = Path.of(System.getProperty("gpuseg.root", "."), "config", "daemon.jvm");
        try (Stream<String> lines = Files.lines(file)) {
            return lines.filter(line -> line.startsWith("-")).toList();
        } catch (final IOException e) {
            throw new UncheckedIOException(file + " cannot be read: " + e.getMessage()
                + "; set -Dgpuseg.root to where gpuseg is installed", e);
        }
    }
}
