/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.UserNames;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What one user can do to another, and what a daemon can do with exactly the privileges that the documents name. */
@Timeout(300)
@Tag("long")
@Tag("beside")
class SecuritySystemTest {
    private static final int DAEMON = 65_533;
    /** A user who is there on every machine: what SUDO_UID names must be one. */
    private static final int SERVED = 1;
    private static final int ALICE = 65_531;
    private static final int BOB = 65_532;
    private static final int CAROL = 65_530;
    private static final int CROWD = 60;
    private static final int TASKS_EACH = 17;
    private static final int FLOOD_S = 5;
    private static final int FLOOD_LEAST = 1000;
    private static final int REFUSED_LEAST = 100;
    private static final int FLOODS_MORE = 3;
    /** What can be open in a daemon, and what a user may leave unread: Daemon and UnreadReplies say the same. */
    private static final long TASKS_MAX = 4096;
    private static final long UNREAD_MAX = 8L << 20;
    private static final int READ_ONLY_ROUNDS = 5;
    private static final int EPERM = 1;
    private static final int EACCES = 13;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    @BeforeEach
    void becomeOthers() {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "only root can become two other users");
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/setpriv")), "setpriv (package util-linux) is missing");
    }

    private Child client(final String name, final int uid, final String... actions) throws IOException {
        return rig.start(name, TaskClient.commandAs(rig, uid, actions));
    }

    /** A daemon of an ordinary user with these capabilities and no way to get others. */
    private Child daemonWith(final String capabilities, final String... options) throws Exception {
        final Path parts = readable(Files.createDirectories(rig.file("parts")));
        final List<String> classPath = classPath(parts);
        final Path programs = Files.createDirectories(parts.resolve("rt-scheduler/native/build"));
        for (Path above = programs; !above.equals(parts); above = above.getParent()) {
            readable(above);
        }
        copy(NativePrograms.named("gpuseg-watchdog"), programs.resolve("gpuseg-watchdog"));
        FileAccess.chown(rig.file(""), DAEMON, DAEMON);
        final String set = capabilities.isEmpty() ? "-all" : "-all," + capabilities;
        final List<String> command = new ArrayList<>(List.of("setpriv", "--reuid=" + DAEMON, "--regid=" + DAEMON,
            "--clear-groups", "--bounding-set=" + set, "--inh-caps=" + set, "--ambient-caps=" + set,
            "--no-new-privs"));
        final List<String> arguments = new ArrayList<>(List.of("--dir", rig.directory().root().toString()));
        arguments.addAll(rig.settings());
        arguments.addAll(List.of(options));
        boolean path = false;
        for (final String word : JavaCommand.daemon(arguments)) {
            command.add(path ? String.join(File.pathSeparator, classPath)
                : word.startsWith("-Dgpuseg.root=") ? "-Dgpuseg.root=" + parts : word);
            path = "-cp".equals(word);
        }
        command.add(command.indexOf("-cp"), "-Djava.io.tmpdir=" + rig.file(""));
        return rig.start("daemon", command);
    }

    /** The class path of this test, where every user can read it. */
    private static List<String> classPath(final Path parts) throws IOException {
        final List<String> classPath = new ArrayList<>();
        for (final String part : System.getProperty("java.class.path").split(File.pathSeparator)) {
            classPath.add(copy(Path.of(part), parts.resolve(classPath.size() + "-" + Path.of(part).getFileName())));
        }
        return classPath;
    }

    /** A user who is in no other group. */
    private static List<String> as(final int uid, final List<String> command) {
        final List<String> all = new ArrayList<>(List.of("setpriv", "--reuid=" + uid, "--regid=" + uid,
            "--clear-groups", "--inh-caps=-all"));
        all.addAll(command);
        return all;
    }

    /** {@code gpuseg status} as a user types it who is in no other group. */
    private Child status(final int uid, final List<String> classPath) throws IOException {
        final List<String> command = JavaCommand.of(Gpuseg.class, List.of("status", "--dir",
            rig.directory().root().toString()));
        command.set(command.indexOf("-cp") + 1, String.join(File.pathSeparator, classPath));
        final Path temporary = Files.createDirectories(rig.file("tmp-" + uid));
        FileAccess.chown(temporary, uid, uid);
        command.add(command.indexOf("-cp"), "-Djava.io.tmpdir=" + temporary);
        return rig.start("status-" + uid, as(uid, command));
    }

    /** For all users, whatever umask an earlier test, or a daemon in this process, has left. */
    private static Path readable(final Path path) {
        FileAccess.chmod(path, 0755);
        return path;
    }

    private static String copy(final Path from, final Path to) throws IOException {
        if (!Files.exists(from)) {
            return to.toString();
        }
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(final Path dir, final BasicFileAttributes a) throws IOException {
                readable(Files.createDirectories(to.resolve(from.relativize(dir).toString())));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(final Path file, final BasicFileAttributes a) throws IOException {
                final String rest = from.relativize(file).toString();
                final Path target = rest.isEmpty() ? to : to.resolve(rest);
                readable(Files.copy(file, target));
                return FileVisitResult.CONTINUE;
            }
        });
        return to.toString();
    }

    private static long effectiveCapabilities(final Child child) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/" + child.pid() + "/status"))) {
            return Long.parseLong(lines.filter(line -> line.startsWith("CapEff:")).findFirst().orElseThrow()
                .substring(7).strip(), 16);
        }
    }

    @Test
    void shouldLetNobodyHintStopOrObserveWhatIsNotTheirs() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final Child alice = client("alice", ALICE, TaskClient.open("secret", 40, 100, 100, 0), "pause");
        assertEquals("open secret 0", alice.await("open secret", 20).strip());
        final Child bob = client("bob", BOB, TaskClient.open("mine", 10, 100, 100, 0),
            "admin:{\"command\":\"hint\",\"task\":\"secret\",\"priority\":1}",
            "admin:{\"command\":\"hint\",\"task\":\"1\",\"priority\":0}",
            "admin:{\"command\":\"policy\",\"policy\":\"rr\"}",
            "admin:{\"command\":\"stop\"}",
            "admin:{\"command\":\"live\",\"since\":-2}",
            "admin:{\"command\":\"status\"}", "pause");
        assertEquals("open mine 0", bob.await("open mine", 20).strip());
        for (int i = 0; i < 5; i++) {
            assertTrue(bob.await("admin", 20).startsWith("admin -" + EPERM + " "), bob.said());
        }
        final String status = bob.await("admin", 20);
        assertTrue(status.startsWith("admin 0 ") && status.contains("\"mine\""), status);
        assertFalse(status.contains("secret"), status);
        assertFalse(status.contains("\"pid\":" + alice.pid() + ","), status);
        assertEquals("fp", rig.status().path("policy").asText());
        assertTrue(rig.status().toString().contains("secret"), "the administrator sees it");
        assertTrue(daemon.isAlive() && alice.isAlive());
    }

    @Test
    void shouldGiveNobodyAnythingToReadOrWriteOfOthers() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child alice = client("alice", ALICE, TaskClient.open("secret", 40, 100, 100, 0), "pause");
        alice.await("open secret 0", 20);
        final Path root = rig.directory().root();
        final List<String> actions = new ArrayList<>();
        final List<String> paths = new ArrayList<>();
        try (Stream<Path> all = Files.walk(root)) {
            for (final Path path : all.filter(Files::isRegularFile).toList()) {
                final String name = root.relativize(path).toString();
                if (name.startsWith("journal") || name.startsWith("clients") || name.equals("held")
                    || name.equals("daemon.lock")) {
                    paths.add(name);
                    actions.add("read:" + path);
                }
            }
        }
        assertTrue(paths.size() >= 6, paths::toString);
        final List<String> writable = List.of("status", "watchdog", "daemon.lock", "held", "journal.ring");
        writable.forEach(name -> actions.add("write:" + root.resolve(name)));
        actions.add("read:" + rig.directory().clients());
        final Child bob = client("bob", BOB, actions.toArray(new String[0]));
        for (final String path : paths) {
            assertEquals("read " + EACCES, bob.await("read", 20), path);
        }
        for (final String path : writable) {
            assertEquals("write " + EACCES, bob.await("write", 20), path);
        }
        assertEquals("read " + EACCES, bob.await("read", 20), "the list of clients");
        assertEquals(0, bob.awaitExit(20));
    }

    @Test
    void shouldMakeItsFilesForItselfWhateverTheUmask() throws Exception {
        final List<String> command = new ArrayList<>(List.of("sh", "-c", "umask 0; exec \"$@\"", "sh"));
        command.addAll(JavaCommand.daemon("--dir", rig.directory().root().toString(), "--mechanism", "gate"));
        command.addAll(rig.settings());
        rig.start("daemon", command).await("gpuseg daemon ready", 60);
        final Map<String, String> modes = new TreeMap<>();
        try (Stream<Path> all = Files.walk(rig.directory().root())) {
            for (final Path path : all.filter(Files::isRegularFile).toList()) {
                modes.put(path.getFileName().toString(),
                    PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
            }
        }
        modes.keySet().removeAll(List.of("daemon.err", "settings.yaml"));   // of this test
        assertEquals("rw-r--r--", modes.remove("status"));
        assertEquals("rw-r--r--", modes.remove("watchdog"));
        assertTrue(modes.keySet().stream().anyMatch(name -> name.endsWith(".cq4")), modes::toString);
        assertEquals(Set.of("rw-------"), Set.copyOf(modes.values()), modes::toString);
    }

    @Test
    void shouldNotAnswerUsersOutsideTheGroupOfItsSocket() throws Exception {
        rig.gpu();
        rig.daemon();
        final List<String> command = new ArrayList<>(TaskClient.commandAs(rig, BOB,
            TaskClient.open("x", 0, 0, 0, 0), "admin:{\"command\":\"status\"}"));
        command.replaceAll(word -> word.startsWith("--regid=") ? "--regid=" + BOB : word);
        final Child stranger = rig.start("stranger", command);
        assertTrue(stranger.await("open x", 20).startsWith("open x -" + EACCES), stranger.said());
        assertTrue(stranger.await("admin", 20).startsWith("admin -" + EACCES), stranger.said());
    }

    @Test
    void shouldServeTheUserWhoCalledSudoAndTellOthersWhatHelps() throws Exception {
        final String name = UserNames.of(SERVED).orElse(null);
        assumeTrue(name != null, "this machine has no user " + SERVED);
        rig.gpu();
        final List<String> command = new ArrayList<>(List.of("env", "SUDO_UID=" + SERVED, "SUDO_GID=" + BOB));
        command.addAll(JavaCommand.daemon("--dir", rig.directory().root().toString(), "--mechanism", "sim"));
        command.addAll(rig.settings());
        final Child daemon = rig.start("daemon", command);
        final String serves = daemon.await("gpuseg serves", 60);
        assertTrue(serves.contains("serves user " + name + ", who called sudo, with priorities up to 99 (a line `"
            + SERVED + " priority N` in ") && serves.contains("env -u SUDO_UID"), serves);
        daemon.await("gpuseg daemon ready", 60);
        final Child caller = rig.start("caller", as(SERVED, TaskClient.command(rig,
            TaskClient.open("camera", 70, 100, 100, 0), TaskClient.open("highest", 99, 0, 0, 0),
            "segments:camera:5:100", "pause")));
        assertEquals("open camera 0", caller.await("open camera", 20).strip());
        assertEquals("open highest 0", caller.await("open highest", 20).strip());
        assertEquals("segments 0", caller.await("segments", 20).strip());
        // SUDO_GID gives no right: others are in that group
        final Child bob = rig.start("bob", as(BOB, TaskClient.command(rig, TaskClient.open("x", 0, 0, 0, 0))));
        final String refused = bob.await("open x", 20);
        assertTrue(refused.startsWith("open x -" + EACCES) && refused.contains("`sudo ")
            && refused.contains("usermod -aG ") && refused.contains("log in again"), refused);
        final Child alice = client("alice", ALICE, TaskClient.open("y", 70, 100, 100, 10));
        final String limited = alice.await("open y", 20);
        assertTrue(limited.startsWith("open y -" + EPERM) && limited.contains("write `" + ALICE + " priority 70` into "
            + "/etc/gpuseg/limits.d/site.conf, restart the daemon"), limited);

        final List<String> classPath = classPath(readable(Files.createDirectories(rig.file("parts"))));
        final Child own = status(SERVED, classPath);
        assertTrue(own.await("camera", 60).contains("camera"), own.said());
        assertEquals(ExitCode.OK, own.awaitExit(60));
        final Child others = status(BOB, classPath);
        assertEquals(ExitCode.FAILURE, others.awaitExit(60), others::said);
        assertTrue(others.said().contains("a daemon runs in " + rig.directory().root() + " (pid " + daemon.pid()
            + "), and serves root, user " + name) && others.said().contains("usermod -aG ")
            && !others.said().contains("start one"), others.said());
        assertEquals(1, rig.counter("conductor_limits_refused"));
    }

    @Test
    void shouldKeepQuotasPerUserAndServeOthersMeanwhile() throws Exception {
        rig.gpu();
        rig.with("clients-per-user: 2", "tasks-per-user: 3").daemon();
        final Child one = client("one", ALICE, TaskClient.open("a", 0, 0, 0, 0), TaskClient.open("b", 0, 0, 0, 0),
            "pause");
        one.await("open b 0", 20);
        final Child two = client("two", ALICE, TaskClient.open("c", 0, 0, 0, 0), TaskClient.open("d", 0, 0, 0, 0),
            "pause");
        two.await("open c 0", 20);
        assertTrue(two.await("open d", 20).contains("user " + ALICE + " has 3 tasks"));
        final Child three = client("three", ALICE, TaskClient.open("e", 0, 0, 0, 0));
        assertTrue(three.await("open e", 20).startsWith("open e -" + Errno.EDQUOT), three.said());
        final Child bob = client("bob", BOB, TaskClient.open("a", 0, 0, 0, 0), "pause");
        assertEquals("open a 0", bob.await("open a", 20).strip());
    }

    @Test
    void shouldSlowDownAUserWhoAsksWithoutEnd() throws Exception {
        rig.gpu();
        rig.daemon();
        final String[] actions = new String[200];
        java.util.Arrays.fill(actions, "admin:{\"command\":\"status\"}");
        // each attempt by another user, who has asked nothing before
        final Deque<Integer> users = new ArrayDeque<>(List.of(BOB, ALICE, CAROL));
        final AtomicLong before = new AtomicLong();
        Attempts.of(users.size(), () -> {
            final Child asking = client("asking" + users.size(), users.pop(), actions);
            asking.awaitExit(60);
            final long refused = asking.allLines().stream().filter(line -> line.startsWith("admin -11 ")).count();
            assertTrue(refused <= 150, refused + " of 200 requests were refused");
            assertEquals(before.addAndGet(refused), rig.counter("conductor_rate_limited"));
            return refused > 50 ? null : refused + " of 200 requests were refused: it did not ask fast enough";
        });
    }

    @Test
    @Timeout(400)   // the flood alone takes 25 s, and a machine under load starts 60 programs in a minute or two
    void shouldKeepItsMemoryWhileAUserFloodsItWithCommandsAndReadsNoAnswer() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        for (int i = 0; i < CROWD; i++) {
            final String[] actions = new String[TASKS_EACH + 1];
            for (int k = 0; k < TASKS_EACH; k++) {
                actions[k] = TaskClient.open((i + "-" + k + "-").concat("x".repeat(63)).substring(0, 63), 0, 0, 0, 0);
            }
            actions[TASKS_EACH] = "pause";
            // one after the other: of sixty at the same time some would wait for their answer for longer than 5 s
            final Child one = client("crowd" + i, ALICE, actions);
            for (int k = 0; k < TASKS_EACH; k++) {
                final String opened = one.await("open ", 60).strip();
                assertTrue(opened.matches("open \\S+ 0"), opened);
            }
            one.await("pause", 60);
        }
        final Child flood = flood();
        final Child bob = client("bob", BOB, TaskClient.open("mine", 10, 0, 0, 0), "segments:mine:100:100",
            "admin:{\"command\":\"status\"}", "pause");
        assertEquals("segments 0", bob.await("segments", 60));
        assertTrue(bob.await("admin", 60).startsWith("admin 0 "), bob.said());
        final Deque<Child> floods = new ArrayDeque<>(List.of(flood));
        final AtomicLong sent = new AtomicLong();
        Attempts.of(1 + FLOODS_MORE, () -> {
            sent.addAndGet(sent(floods.isEmpty() ? flood() : floods.pop()));
            assertTrue(daemon.isAlive(), daemon.said());
            // it had no processor, or the daemon had none to refuse it
            return sent.get() > FLOOD_LEAST && refused() > REFUSED_LEAST ? null
                : sent + " commands, " + refused() + " refused, are no flood";
        });
        final JsonNode all = rig.status();
        assertEquals(CROWD * TASKS_EACH + 1, all.path("tasks").size());
        final long most = all.toString().getBytes(StandardCharsets.UTF_8).length * TASKS_MAX / (CROWD * TASKS_EACH);
        assertTrue(most < UNREAD_MAX, "an answer with all tasks that can be open has " + most + " bytes");
        assertFalse(daemon.said().contains("OutOfMemory"), daemon.said());
    }

    /** Sixty connections for 25 s, whose answers are not read. */
    private Child flood() throws IOException {
        return client("flood", ALICE, "flood:60:25:{\"command\":\"status\"}");
    }

    private static long sent(final Child flood) throws Exception {
        return Long.parseLong(flood.await("flood", 120).split(" ")[1]);
    }

    private long refused() {
        return rig.counter("conductor_rate_limited") + rig.counter("conductor_admin_refused")
            + rig.counter("conductor_unread_dropped");
    }

    /** What the campaign's hostile user does, by a member, for some seconds. */
    private void hostile(final String attack) throws Exception {
        final Path program = rig.file("gpuseg-hostile");
        Files.copy(NativePrograms.named("gpuseg-hostile"), program);
        FileAccess.chmod(program, 0755);
        final List<String> command = new ArrayList<>(TaskClient.commandAs(rig, ALICE));
        command.subList(command.size() - 2, command.size()).clear();
        command.addAll(List.of(program.toString(), attack, "--dir", rig.directory().root().toString(), "--seed", "7",
            "--duration", FLOOD_S + "s"));
        final Child flood = rig.start("flood", command);
        assertEquals(0, flood.awaitExit(60), flood.said());
    }

    @Test
    void shouldSlowDownAUserWhoOpensTasksWithoutEnd() throws Exception {
        rig.gpu();
        rig.daemon();
        final long beganNs = System.nanoTime();
        hostile("flood-opens");
        final long seconds = 1 + (System.nanoTime() - beganNs) / 1_000_000_000;
        assertTrue(rig.counter("tasks_opened") <= 2048 + 100 * seconds, () -> rig.status().toString());
        assertTrue(rig.counter("clients_opened") <= 256 + 20 * seconds, () -> rig.status().toString());
        // it sends no command, so these are tasks and registrations
        assertEquals(0, rig.counter("conductor_admin_refused"));
        assertTrue(rig.counter("conductor_rate_limited") > 1000, () -> rig.status().toString());
        final Child bob = client("bob", BOB, TaskClient.open("mine", 10, 0, 0, 0));
        assertEquals("open mine 0", bob.await("open mine", 20).strip(), "the rate is each user's own");
    }

    @Test
    void shouldCollectNoGarbageForCommandsThatItRefuses() throws Exception {
        rig.gpu();
        rig.daemon();
        final long before = rig.counter("gc_pauses");
        hostile("flood-commands");
        assertTrue(rig.counter("conductor_rate_limited") > 1000, () -> rig.status().toString());
        // were every text of 64 KiB decoded first, this would be some 20 collections in a second
        final long collections = rig.counter("gc_pauses") - before;
        assertTrue(collections < 4 * FLOOD_S, collections + " collections in " + FLOOD_S + " s");
    }

    @Test
    void shouldShowNoNameThatATerminalWouldObey() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final List<String> names = List.of("\u001b[31mred", "\u001b]0;title\u0007", "\u009b31m", "a\nb", "\u202egnp",
            "\u2066x", "zero\u200bwidth");
        final List<String> actions = new ArrayList<>();
        names.forEach(name -> actions.add(TaskClient.open(name, 10, 100, 100, 0)));
        actions.add("admin:{\"command\":\"\\u001b[31m\"}");
        actions.add(TaskClient.open("<b>&\"plain", 10, 100, 100, 0));
        actions.add("pause");
        final Child alice = client("alice", ALICE, actions.toArray(new String[0]));
        assertEquals("open <b>&\"plain 0", alice.await("open <b>", 20).strip());
        assertEquals(names.size(), rig.counter("conductor_tasks_refused"));
        final String directory = rig.directory().root().toString();
        for (final StringOutput shown : List.of(StringOutput.of("status", "--dir", directory),
            StringOutput.of("status", "--json", "--dir", directory),
            StringOutput.of("cgroups", "--dir", directory))) {
            assertEquals(ExitCode.OK, shown.status(), shown::err);
            assertTrue(isPlain(shown.out()), shown::out);
        }
        final List<String> events = new ArrayList<>();
        JournalReader.forEach(rig.directory().journal(), event -> events.add(event.text()));
        assertTrue(events.stream().anyMatch(text -> text.contains("plain")), events::toString);
        assertTrue(events.stream().allMatch(SecuritySystemTest::isPlain), events::toString);
        assertTrue(isPlain(daemon.said()), daemon.said());
    }

    private static boolean isPlain(final String text) {
        return text.lines().flatMapToInt(String::codePoints).allMatch(PlainText::isPlain) && !text.contains("\\u00");
    }

    @Test
    void shouldGiveMembersHalfOfThePrioritiesAndEndWhatTheyNeverEnd() throws Exception {
        rig.gpu();
        rig.with("limits: " + Files.createDirectories(rig.file("limits.d"))).daemon();
        final Child alice = client("alice", ALICE, TaskClient.open("top", 50, 100, 100, 10),
            TaskClient.open("long", 40, 1000, 1000, 300), TaskClient.open("endless", 49, 0, 0, 0), "begin:endless",
            "pause");
        final String top = alice.await("open top", 20);
        assertTrue(top.startsWith("open top -" + EPERM + " ") && top.contains("limit priority of user " + ALICE
            + " is 49") && top.contains("write `" + ALICE + " priority 50` into ")
            && top.contains("limits.d/site.conf"), top);
        final String tooLong = alice.await("open long", 20);
        assertTrue(tooLong.startsWith("open long -" + EPERM + " ") && tooLong.contains("limit budget"), tooLong);
        assertEquals("open endless 0", alice.await("open endless", 20).strip());
        assertEquals("begin 0", alice.await("begin", 20));
        final Child bob = client("bob", BOB, TaskClient.open("patient", 1, 0, 0, 0), "begin:patient", "pause");
        assertEquals("begin 0", bob.await("begin", 20), "a segment that never ends loses its rank after 200 ms");
        final JsonNode endless = rig.status().path("tasks").path(0);
        assertEquals("endless", endless.path("name").asText());
        assertEquals(200_000_000, endless.path("budget_ns").asLong());
        assertTrue(endless.path("overruns").asLong() == 1 && endless.path("demoted").asBoolean(), endless::toString);
        assertEquals(2, rig.counter("conductor_limits_refused"));
    }

    @Test
    void shouldLeaveHalfOfTheGpuToOthersHoweverManyTasksAMemberHas() throws Exception {
        rig.gpu();
        rig.with("limits: " + Files.createDirectories(rig.file("limits.d"))).daemon();
        final Child bob = client("bob", BOB, TaskClient.open("patient", 1, 0, 0, 0), "pause");
        bob.await("open patient 0", 20);
        final List<Child> crowd = new ArrayList<>();
        for (int i = 0; i < 3; i++) {   // each segment ends within its budget of 200 ms, and one is always begun
            crowd.add(client("crowd" + i, ALICE, TaskClient.open("greedy" + i, 49, 0, 0, 0),
                "segments:greedy" + i + ":400:50000", "pause"));
        }
        for (int i = 0; i < 3; i++) {
            crowd.get(i).await("open greedy" + i + " 0", 20);
        }
        SystemRig.await("a share is used up", 30_000, () -> rig.counter("shares_used_up") >= 3);
        final Child carol = client("carol", BOB, TaskClient.open("late", 1, 0, 0, 0), "begin:late", "pause");
        assertEquals("begin 0", carol.await("begin", 20), "while the crowd still begins segments of higher priority");
        assertTrue(crowd.stream().allMatch(Child::isAlive));
        final List<String> shares = new ArrayList<>();
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.SHARE) {
                shares.add(event.taskId() + " " + event.arg0());
            }
        });
        assertTrue(shares.size() >= 3, shares::toString);
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", rig.directory().root().toString()).status());
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());
    }

    @Test
    void shouldEndTheNewestProcessOfAUserWhoHasMoreContextsThanHisLimit() throws Exception {
        final Path limits = Files.createDirectories(rig.file("limits.d"));
        Files.writeString(limits.resolve("robot.conf"), "* contexts 2\n");
        rig.gpu();
        final Child daemon = rig.with("limits: " + limits).daemon();
        final List<Child> crowd = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            crowd.add(client("crowd" + i, ALICE, TaskClient.open("a" + i, 0, 0, 0, 0), "pause"));
            if (i < 2) {
                crowd.get(i).await("pause", 20);
            }
        }
        for (int i = 2; i < 5; i++) {
            SystemRig.awaitEnd(crowd.get(i), 15_000);
        }
        SystemRig.await("they are counted", 15_000, () -> rig.counter("contexts_beyond_limit") == 3);
        final Child bob = client("bob", BOB, TaskClient.open("mine", 10, 0, 0, 0), "segments:mine:50:100", "pause");
        assertEquals("segments 0", bob.await("segments", 20));
        assertTrue(crowd.get(0).isAlive() && crowd.get(1).isAlive());
        assertTrue(daemon.said().contains("limit contexts of user " + ALICE + " is 2"), daemon.said());
    }

    @Test
    void shouldLetPriorityBeARightOfUsers() throws Exception {
        final Path limits = Files.createDirectories(rig.file("limits.d"));
        Files.writeString(limits.resolve("robot.conf"), "* priority 30\n* unbudgeted 0\n" + BOB + " priority 80\n");
        rig.gpu();
        rig.with("limits: " + limits).daemon();
        final Child alice = client("alice", ALICE, TaskClient.open("top", 99, 100, 100, 10),
            TaskClient.open("endless", 30, 100, 100, 0), TaskClient.open("fair", 30, 100, 100, 10),
            TaskClient.open("rest", 0, 0, 0, 0), "pause");
        final String refused = alice.await("open top", 20);
        assertTrue(refused.startsWith("open top -" + EPERM + " ")
            && refused.contains("limit priority of user " + ALICE + " is 30"), refused);
        final String endless = alice.await("open endless", 20);
        assertTrue(endless.startsWith("open endless -" + EPERM + " ") && endless.contains("budget"), endless);
        assertEquals("open fair 0", alice.await("open fair", 20).strip());
        assertEquals("open rest 0", alice.await("open rest", 20).strip());
        final Child bob = client("bob", BOB, TaskClient.open("high", 80, 100, 100, 10), "pause");
        assertEquals("open high 0", bob.await("open high", 20).strip());
        assertEquals(2, rig.counter("conductor_limits_refused"));
    }

    @Test
    void shouldBoundTheConnectionsOfAUser() throws Exception {
        rig.gpu();
        rig.with("clients-per-user: 2").daemon();
        final Child alice = client("alice", ALICE, "flood:200:2:{\"command\":\"status\"}");
        alice.await("flood", 30);
        assertTrue(rig.counter("conductor_connections_refused") > 0, () -> rig.status().toString());
        final Child bob = client("bob", BOB, "admin:{\"command\":\"status\"}");
        assertTrue(bob.await("admin", 30).startsWith("admin 0 "), bob.said());
    }

    @Test
    void shouldServeItsOwnUserWithoutAnyPrivilege() throws Exception {
        final int umask = FileAccess.umask(0077);   // as strict as an earlier test can leave it
        final Child daemon;
        try {
            daemon = daemonWith("", "--mechanism", "gate");
            daemon.await("ready", 120);
        } finally {
            FileAccess.umask(umask);
        }
        assertEquals(0, effectiveCapabilities(daemon));
        final Child own = client("own", DAEMON, TaskClient.open("a", 10, 0, 0, 0), "segments:a:50:100", "close:a");
        assertEquals("open a 0", own.await("open a", 20).strip());
        assertEquals("segments 0", own.await("segments", 20));
        final Child other = client("other", BOB, TaskClient.open("a", 10, 0, 0, 0));
        final String refused = other.await("open a", 20);
        assertTrue(refused.startsWith("open a -" + EPERM) && refused.contains("capability"), refused);
        daemon.terminate();
        assertEquals(0, daemon.awaitExit(20), daemon.said());
    }

    @Test
    void shouldServeOtherUsersWithChownAndFownerAlone() throws Exception {
        rig.with("queue-size: 256KiB");
        final Child daemon = daemonWith("+chown,+fowner", "--mechanism", "gate");
        daemon.await("ready", 120);
        assertEquals(1L | 1L << 3, effectiveCapabilities(daemon), "CAP_CHOWN and CAP_FOWNER");
        // enough records for several cycles of the queue
        final Child other = client("other", BOB, TaskClient.open("a", 10, 0, 0, 0), "segments:a:6000:0", "close:a",
            "pause");
        assertEquals("open a 0", other.await("open a", 20).strip());
        assertEquals("segments 0", other.await("segments", 60));
        assertEquals("close a 0", other.await("close a", 20));
        SystemRig.signal(other, "KILL");
        SystemRig.await("its files are deleted", 20_000,
            () -> rig.directory().clients().toFile().list().length == 0);
        assertEquals(0, rig.counter("conductor_cleanup_errors"));
        assertEquals(0, rig.counter("poisoned"));
        daemon.terminate();
        assertEquals(0, daemon.awaitExit(20), daemon.said());
    }

    /** It could not open the files that it has given to their users: CAP_DAC_OVERRIDE is missing. */
    @Test
    void shouldLendQueuesToAReadOnlyMountWithChownAndFownerAlone() throws Exception {
        final Process mounts = new ProcessBuilder("unshare", "--mount", "true").start();
        assumeTrue(mounts.waitFor() == 0, "a mount namespace is not permitted here");
        rig.with("queue-size: 256KiB");
        final Child daemon = daemonWith("+chown,+fowner", "--mechanism", "gate");
        daemon.await("ready", 120);
        final List<String> actions = new ArrayList<>(List.of(TaskClient.open("a", 10, 0, 0, 0)));
        for (int i = 0; i < READ_ONLY_ROUNDS; i++) {
            actions.add("segments:a:1500:0");   // a cycle of the queue, and more
        }
        actions.add("close:a");
        final Child other = rig.start("other", TaskClient.commandReadOnly(rig, BOB, actions.toArray(String[]::new)));
        assertEquals("open a 0", other.await("open a", 20).strip());
        assertEquals(0, other.awaitExit(120), other.said());
        // -EBUSY: the thread that asks for the next cycle had no processor in time
        final List<String> rounds = other.allLines().stream().filter(line -> line.startsWith("segments ")).toList();
        assertEquals(READ_ONLY_ROUNDS, rounds.size(), other.said());
        assertTrue(rounds.stream().allMatch(line -> line.equals("segments 0") || line.equals("segments -16")),
            rounds::toString);
        assertTrue(rounds.contains("segments 0"), rounds::toString);
        assertTrue(rig.counter("conductor_queue_files") >= 3, () -> rig.status().toString());
        assertEquals(0, rig.counter("poisoned"));
        assertEquals(0, rig.counter("conductor_protocol_errors"));
    }

    @Test
    void shouldLockItsMemoryWithIpcLockAlone() throws Exception {
        final Child with = daemonWith("+ipc_lock", "--mechanism", "gate", "--cpu", "0");
        with.await("ready", 120);
        assertEquals(1L << 14, effectiveCapabilities(with), "CAP_IPC_LOCK");
        try (Stream<String> lines = Files.lines(Path.of("/proc/" + with.pid() + "/status"))) {
            assertTrue(lines.anyMatch(line -> line.matches("VmLck:\\s+\\d{5,} kB")), with.said());
        }
        with.terminate();
        assertEquals(0, with.awaitExit(20), with.said());
    }

    @Test
    void shouldHaveNoNetworkSocketButTheOneOfMetrics() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        client("alice", ALICE, TaskClient.open("a", 10, 0, 0, 0), "pause").await("open a 0", 20);
        assertEquals(List.of(), networkSockets(daemon));
        assertEquals(List.of("tcp"), networkSockets(rig.nextDaemon("--metrics", "127.0.0.1:0")));
    }

    /** The tables of the kernel in which a socket of the process stands. */
    private static List<String> networkSockets(final Child child) throws IOException {
        final Path process = Path.of("/proc/" + child.pid());
        final List<String> inodes = new ArrayList<>();
        try (Stream<Path> descriptors = Files.list(process.resolve("fd"))) {
            for (final Path descriptor : descriptors.toList()) {
                final String link = Files.isSymbolicLink(descriptor)   // or it was closed meanwhile
                    ? Files.readSymbolicLink(descriptor).toString() : "";
                if (link.startsWith("socket:[")) {
                    inodes.add(link.substring(8, link.length() - 1));
                }
            }
        }
        final List<String> found = new ArrayList<>();
        for (final String table : List.of("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet")) {
            final Path path = process.resolve("net").resolve(table);
            for (final String line : Files.exists(path) ? Files.readAllLines(path) : List.<String>of()) {
                if (inodes.stream().anyMatch(inode -> List.of(line.split("\\s+")).contains(inode))) {
                    found.add(table.replace("6", ""));   // a socket of IPv6 may serve an address of IPv4
                }
            }
        }
        return found;
    }

    @Test
    void shouldNeedSysNiceForARealTimePriorityAndSayIt() throws Exception {
        final Child without = daemonWith("", "--mechanism", "gate", "--priority", "10");
        assertEquals(ExitCode.FAILURE, without.awaitExit(40));
        assertTrue(without.said().contains("CAP_SYS_NICE"), without.said());
    }

    @Test
    void shouldTakeARealTimePriorityWithSysNiceAlone() throws Exception {
        final Child with = daemonWith("+sys_nice", "--mechanism", "gate", "--priority", "10");
        with.await("ready", 120);
        assertEquals(1L << 23, effectiveCapabilities(with), "CAP_SYS_NICE");
        with.terminate();
        assertEquals(0, with.awaitExit(20), with.said());
    }
}
