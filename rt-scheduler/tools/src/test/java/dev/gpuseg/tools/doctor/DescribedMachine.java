/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The files by which drivers describe a machine, from {@code machines/NAME.txt}; doctor looks at them alone. */
final class DescribedMachine implements AutoCloseable {
    private static final String PROCESS = "process ";
    private static final String OPENS = " opens ";
    private static final String TARGET = ": /";

    private final Path root;

    DescribedMachine(final String name, final Path root) throws IOException {
        this.root = root;
        try (InputStream in = DescribedMachine.class.getResourceAsStream("machines/" + name + ".txt")) {
            for (final String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).lines().toList()) {
                if (line.startsWith(PROCESS)) {
                    process(line.substring(PROCESS.length()));
                } else if (!line.startsWith("#")) {
                    final int end = line.indexOf(": ");
                    put(end < 0 ? line.substring(0, line.length() - 1) : line.substring(0, end),
                        end < 0 ? "" : line.substring(end + 2).replace("\\n", "\n") + "\n");
                }
            }
        }
        System.setProperty(MachineFiles.ROOT_PROPERTY, root.toString());
    }

    /** Such as {@code 812: /usr/bin/sway opens /dev/dri/card0}. */
    private void process(final String line) throws IOException {
        final int program = line.indexOf(TARGET);
        final int opens = line.indexOf(OPENS);
        final Path exe = put(line.substring(program + TARGET.length(), opens), "");
        final Path directory = root.resolve("proc").resolve(line.substring(0, program));
        Files.createDirectories(directory.resolve("fd"));
        Files.createSymbolicLink(directory.resolve("exe"), exe);
        int fd = 3;
        for (final String file : line.substring(opens + OPENS.length()).split(" ")) {
            Files.createSymbolicLink(directory.resolve("fd/" + fd), Path.of(file));
            fd++;
        }
    }

    /** Writes a file, as if it were at {@code /path}. */
    Path put(final String path, final String text) throws IOException {
        final Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, text);
    }

    /** What doctor prints. */
    StringOutput doctor(final String... options) throws IOException {
        final String[] all = new String[options.length + 3];
        all[0] = "doctor";
        all[1] = "--dir";
        all[2] = Files.createDirectories(root.resolve("run/gpuseg")).toString();
        System.arraycopy(options, 0, all, 3, options.length);
        return StringOutput.of(all);
    }

    @Override
    public void close() {
        System.clearProperty(MachineFiles.ROOT_PROPERTY);
    }
}
