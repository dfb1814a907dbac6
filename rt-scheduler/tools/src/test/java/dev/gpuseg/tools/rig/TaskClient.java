/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import dev.gpuseg.ipc.NativeTool;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Command lines of {@code task_client.c}, an application that does what it is told. */
public final class TaskClient {
    private TaskClient() {
    }

    /** Compiles it; every user may run it. */
    static Path compile(final Path directory) {
        final Path root = NativeTool.root();
        final Path program = directory.resolve("task_client");
        if (!Files.exists(program)) {
            NativeTool.run(60, "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                "-I" + root.resolve("segment-api/include"),
                root.resolve("rt-scheduler/tools/src/test/c/task_client.c").toString(),
                root.resolve("segment-api/build/libgpuseg.a").toString(), "-lpthread", "-o", program.toString());
        }
        return program;
    }

    public static List<String> command(final SystemRig rig, final String... actions) {
        final List<String> command = new ArrayList<>(List.of(compile(rig.file("")).toString(),
            rig.directory().root().toString()));
        command.addAll(Arrays.asList(actions));
        return command;
    }

    /** The same as another user of the socket's group. */
    public static List<String> commandAs(final SystemRig rig, final int uid, final String... actions)
        throws IOException {
        final int group = (Integer) Files.getAttribute(rig.directory().socket(), "unix:gid");
        final List<String> command = new ArrayList<>(List.of("setpriv", "--reuid=" + uid, "--regid=" + group,
            "--clear-groups", "--inh-caps=-all"));
        command.addAll(command(rig, actions));
        return command;
    }

    /** The same where the runtime directory is mounted read-only, as in a container. */
    public static List<String> commandReadOnly(final SystemRig rig, final int uid, final String... actions)
        throws IOException {
        final List<String> command = new ArrayList<>(List.of("unshare", "--mount", "sh", "-c",
            "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"",
            rig.directory().root().toString()));
        command.addAll(commandAs(rig, uid, actions));
        return command;
    }

    public static String open(final String name, final int priority, final long periodMs, final long deadlineMs,
        final long budgetMs) {
        return "open:" + name + ":" + priority + ":0:" + periodMs * 1_000_000 + ":" + deadlineMs * 1_000_000 + ":"
            + budgetMs * 1_000_000;
    }
}
