/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What happens to a robot without malice: each fault strikes its victims and repairs what an operator would repair. */
final class Accidents implements AutoCloseable {
    private static final int STOPS_MAX = 20;
    private static final long NS_PER_S = 1_000_000_000;
    /** A slow machine writes too little to roll a queue in this time: nothing to judge. */
    private static final int ROLL_MS = 15_000;
    private static final int BYTES_PER_FILL = 1 << 16;
    private static final int ROLLS = 2;
    private static final long FULL_LENGTHS = 4;
    private static final long LOOK_MS = 20;
    private static final long NS_PER_MS = 1_000_000;
    private static final long[] CLOCK_STEPS_S = {1, -1, 3_600, -3_600, 86_400, -86_400, 315_360_000, -315_360_000};

    private final Stage stage;
    private final FaultRig rig;
    private final Judgement judgement;
    private final SmallDisk smallDisk;

    /** @param judgement of a rig of its own */
    Accidents(final Stage stage, final Judgement judgement) {
        this.stage = stage;
        this.judgement = judgement;
        rig = stage.rig();
        smallDisk = new SmallDisk(stage);
    }

    /** What is left of these rounds is ended; what was not as it must be is returned, one line each. */
    List<String> finish() throws InterruptedException, TimeoutException {
        return smallDisk.end();
    }

    @Override
    public void close() {
        smallDisk.close();
    }

    /** Daemons that were started beside those of the rig. */
    int daemonsStarted() {
        return smallDisk.daemonsStarted();
    }

    /** Lets the round's fault strike. */
    void strike() throws IOException, InterruptedException, TimeoutException {
        switch (stage.round().fault()) {
            case KILL_CLIENT -> killClient();
            case KILL_GPU_USER -> killGpuUser();
            case KILL_DAEMON -> killDaemon();
            case KILL_WATCHDOG -> killWatchdog();
            case STOP_HOLDER, STOP_CLIENT -> stopClient();
            case STOP_DAEMON -> stopDaemon();
            case TRUNCATE_QUEUE -> truncateQueue();
            case FULL_DISK -> fullDisk();
            case ROLL_UNDER_LOAD -> rollUnderLoad();
            case UPGRADE_DAEMON -> upgradeDaemon();
            case CLOCK_STEP -> stepClock();
            case CLOCK_FOREIGN -> foreignClock();
            case REUSED_PID -> reusePid();
            case FORK -> fork();
            case EXEC -> exec();
            case INFINITE_KERNEL -> infiniteKernel();
            default -> throw new IllegalStateException("fault " + stage.round().fault());
        }
    }

    private void killClient() throws InterruptedException {
        final FaultClient victim = stage.round().variant() % 3 == 0 && stage.round().step() != Step.WAITING
            ? stage.victim("--period", "15ms", "--segments", "gpu:2ms+5ms") : stage.realTimeVictim();
        stage.awaitStep(victim);
        stage.struck();
        victim.signal(FaultRig.KILL);
    }

    private void killGpuUser() throws InterruptedException {
        final FaultClient victim = stage.victim("--unmanaged", "--period", "15ms", "--segments", "gpu:1ms+8ms");
        stage.awaitStep(victim);
        stage.struck();
        victim.signal(FaultRig.KILL);
    }

    private void killDaemon() throws InterruptedException, TimeoutException {
        Child newcomer = null;
        if (stage.round().step() == Step.HELD) {
            stage.awaitHeld();
        } else if (stage.round().step() == Step.REGISTERING) {
            newcomer = registering();
            TimeUnit.MILLISECONDS.sleep(stage.round().delayMs() / 2);
        } else {
            TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
        }
        stage.struck();
        rig.killDaemon();
        if (stage.round().step() == Step.STARTING) {
            stage.awaitNotice();
            final Child successor = rig.launchDaemon();
            TimeUnit.MILLISECONDS.sleep(stage.round().variant() + stage.round().delayMs());
            ProcessStatus.signal((int) successor.pid(), FaultRig.KILL);
            successor.awaitExit(FaultRig.HANG_S);
        }
        stage.daemonWent();
        if (newcomer != null) {
            stage.await("a client that registered while the daemon was killed", newcomer);
        }
    }

    /** A client that has just been started: whatever becomes of it, it must not stay in the middle. */
    private Child registering() {
        return Child.start("registering", List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.outside().toString(), "--name", "registering", "--period", "5ms", "--segments", "gpu:0ms+1ms",
            "--duration", "500ms"), stage.out().resolve("registering.err"));
    }

    private void killWatchdog() throws InterruptedException {
        final int pid = stage.strikeWatchdog();
        if (pid == 0) {
            return;
        }
        if (!Polling.until(() -> rig.status().path("daemon").path("watchdog_pid").asInt() != pid, Stage.HANG_MS)) {
            stage.hung("the daemon did not start another watchdog");
        }
    }

    private void stopClient() throws InterruptedException {
        final FaultClient victim = stage.realTimeVictim();
        stage.awaitStep(victim);
        stage.struck();
        victim.signal(FaultRig.STOP);
        stage.othersGoOn("while a client is stopped");
        stage.over();
        victim.signal(FaultRig.CONT);
        stage.alsoGoesOn(victim, "after it was stopped");
    }

    private void stopDaemon() throws InterruptedException {
        if (stage.round().step() == Step.HELD) {
            stopDaemonThatHolds();
        } else {
            TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
            stage.struck();
            rig.signalDaemon(FaultRig.STOP);
        }
        stage.lasts(0);
        stage.over();
        rig.signalDaemon(FaultRig.CONT);
    }

    /** On a slow machine the holder may be through before the signal arrives: then it goes on, and once more. */
    private void stopDaemonThatHolds() throws InterruptedException {
        final FaultClient holder = stage.awaitHeld();
        for (int i = 0; i < STOPS_MAX; i++) {
            stage.struck();
            rig.signalDaemon(FaultRig.STOP);
            TimeUnit.MILLISECONDS.sleep(1);
            if (rig.held() > 0) {
                return;
            }
            rig.signalDaemon(FaultRig.CONT);
            stage.awaitHeld(holder);
        }
        throw new IllegalStateException("the daemon held nothing at any of " + STOPS_MAX + " stops");
    }

    private void truncateQueue() throws IOException, InterruptedException {
        final FaultClient victim = stage.victim("--period", "2ms", "--segments", "gpu:0ms+100us");
        rig.ledger().exclude(victim.pid());
        victim.await(() -> victim.page().jobs() > 2, Stage.HANG_MS);
        TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
        stage.struck();
        int files = 0;
        try (DirectoryStream<Path> clients = Files.newDirectoryStream(rig.outside().resolve("clients"),
            "*-" + victim.pid())) {
            for (final Path client : clients) {
                try (DirectoryStream<Path> queue = Files.newDirectoryStream(client.resolve("queue"),
                    stage.round().variant() % 4 == 0 ? "*.cq4t" : "*.cq4")) {
                    for (final Path file : queue) {
                        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                            channel.truncate(channel.size() * (stage.round().variant() % 3) / 3);
                            files++;
                        }
                    }
                }
            }
        }
        if (files == 0) {
            throw new IllegalStateException("no queue file of process " + victim.pid() + " was found to truncate");
        }
        // the daemon drops it, or it met its own missing pages; at a table of a roll nobody may look again
        Polling.until(() -> rig.ledger().hasLeft(victim.pid()), stage.round().lengthMs());
        stage.over();
    }

    private void rollUnderLoad() throws InterruptedException {
        final FaultClient victim = stage.victim("--period", "100us", "--segments", "gpu:0ms+0ms", "--duration", "60s");
        TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
        stage.struck();
        if (!awaitRolls(victim)) {
            stage.skip("the queue did not roll within " + ROLL_MS + " ms");
        }
        stage.over();
        if (stage.round().variant() % 2 == 0) {
            victim.signal(FaultRig.KILL);
        } else {
            stage.goOn(List.of(victim), "under load");
            victim.signal(FaultRig.TERM);
        }
    }

    /** Until its queue has rolled a few times; on a slow machine once is enough after the drawn length. */
    private boolean awaitRolls(final FaultClient victim) throws InterruptedException {
        final Set<String> cycles = new HashSet<>();
        final long drawnNs = stage.struckNs() + stage.round().lengthMs() * NS_PER_MS;
        return Polling.until(() -> {
            cycles.addAll(cyclesOf(victim));
            return cycles.size() > ROLLS || cycles.size() > 1 && System.nanoTime() - drawnNs > 0;
        }, ROLL_MS);
    }

    private Set<String> cyclesOf(final FaultClient victim) {
        final Set<String> names = new HashSet<>();
        try (DirectoryStream<Path> clients = Files.newDirectoryStream(rig.outside().resolve("clients"),
            "*-" + victim.pid())) {
            for (final Path client : clients) {
                try (DirectoryStream<Path> queue = Files.newDirectoryStream(client.resolve("queue"), "*.cq4")) {
                    queue.forEach(file -> names.add(file.getFileName().toString()));
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            return names;   // deleted while it was read
        }
        return names;
    }

    private void upgradeDaemon() throws InterruptedException, TimeoutException {
        if (stage.round().step() == Step.HELD) {
            stage.awaitHeld();
        } else {
            TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
        }
        stage.struck();
        final int status = rig.stopDaemon();
        if (status != 0 || rig.held() != 0) {
            stage.problem("clean stop with status " + status + ", " + rig.held() + " contexts held: "
                + rig.daemon().said());
        }
        stage.daemonWent();
    }

    private void stepClock() throws IOException, InterruptedException {
        TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
        stage.struck();
        rig.stepClock(CLOCK_STEPS_S[stage.round().variant() % CLOCK_STEPS_S.length] * NS_PER_S);
        stage.goOn(new ArrayList<>(stage.residents().values()), "after the clock was stepped");
        stage.over();   // the clock stays where it is, for the rounds that follow
    }

    private void foreignClock() throws InterruptedException {
        if (!stage.isRoot()) {
            stage.skip("a time namespace needs root");
            return;
        }
        final long before = AdminClient.counter(rig.status(), "poisoned");
        stage.struck();
        final FaultClient victim = stage.victim(List.of("unshare", "--time", "--monotonic", "3600"), "--period", "5ms",
            "--segments", "gpu:0ms+1ms");
        rig.ledger().exclude(victim.pid());
        if (!Polling.until(() -> AdminClient.counter(rig.status(), "poisoned") > before, Stage.HANG_MS)) {
            stage.problem("a client that is an hour ahead was not dropped");
        }
        stage.over();
    }

    private void reusePid() throws InterruptedException, TimeoutException {
        if (!stage.isRoot()) {
            stage.skip("choosing a pid needs root");
            return;
        }
        final FaultClient first = stage.realTimeVictim();
        stage.awaitStep(first);
        stage.struck();
        first.signal(FaultRig.KILL);
        final FaultClient second = stage.victim(List.of(NativePrograms.named("gpuseg-as-pid").toString(),
            Integer.toString(first.pid())), "--period", "10ms", "--segments", "gpu:0ms+2ms", "--priority", "70");
        if (second.pid() != first.pid()) {
            throw new IllegalStateException("pid " + first.pid() + " was not given out again");
        }
        stage.alsoGoesOn(second, "with the pid of a killed client");
    }

    private void fork() throws InterruptedException {
        final FaultClient victim = stage.realTimeVictim("--on-usr2", "fork");
        stage.awaitStep(victim);
        victim.signal(FaultRig.USR2);
        TimeUnit.MILLISECONDS.sleep(2);
        stage.struck();
        victim.signal(FaultRig.KILL);
    }

    private void exec() throws InterruptedException {
        final FaultClient victim = stage.realTimeVictim("--on-usr2", "exec");
        stage.awaitStep(victim);
        stage.struck();
        victim.signal(FaultRig.USR2);
        if (!Polling.until(() -> isAnother(victim), Stage.HANG_MS)) {
            throw new IllegalStateException("the client did not become another program: " + victim.process().said());
        }
        if (!Polling.until(() -> rig.ledger().hasLeft(victim.pid()), Stage.HANG_MS)) {
            stage.problem("a client that became another program is still one");
        }
    }

    private static boolean isAnother(final FaultClient victim) {
        try {
            return !Files.readString(Path.of("/proc/" + victim.pid() + "/comm")).startsWith("gpuseg");
        } catch (final IOException e) {
            return true;   // it has ended meanwhile
        }
    }

    private void infiniteKernel() throws InterruptedException {
        final FaultClient victim = stage.victim("--period", "1s", "--segments", "gpu:0ms+1000s", "--priority", "80",
            "--budget", Stage.BUDGET_MS + "ms");
        if (!victim.awaitState(Abi.PROGRESS_KERNEL, Stage.HANG_MS)) {
            throw new IllegalStateException("the infinite kernel does not begin: " + victim.process().said());
        }
        stage.struck();
        stage.othersGoOn("beside an infinite kernel");
        stage.over();
        victim.signal(FaultRig.KILL);
    }

    /** A rig of its own on a small file system, which is filled to the last byte and emptied again. */
    private void fullDisk() throws IOException, InterruptedException, TimeoutException {
        if (!stage.isRoot()) {
            stage.skip("mounting a small file system needs root");
            return;
        }
        final FaultRig small = smallDisk.rig();
        final Map<String, FaultClient> clients = new HashMap<>();
        boolean survived = false;
        try {
            for (final String name : List.of("background", "steady", "camera")) {
                clients.put(name, Stage.resident(small, name));
            }
            stage.goOn(new ArrayList<>(clients.values()), "before the disk is full");
            TimeUnit.MILLISECONDS.sleep(stage.round().delayMs());
            stage.struck();
            final Path filler = small.outside().resolve("filler");
            fill(filler);
            if (stage.round().step() == Step.REGISTERING) {
                final Child newcomer = Child.start("newcomer", List.of("nsenter",
                    "--mount=/proc/" + small.daemon().pid() + "/ns/mnt", "--",
                    NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
                    small.inside().toString(), "--name", "newcomer", "--period", "5ms", "--segments",
                    "gpu:0ms+1ms", "--duration", "100ms"), stage.out().resolve("newcomer.err"));
                stage.await("a client that registered on a full disk", newcomer);
            }
            awaitFullJournal(small);
            stage.goOn(new ArrayList<>(clients.values()), "while the disk is full");
            Files.delete(filler);
            stage.over();
            judgement.judge(small, clients);
            for (final FaultClient client : clients.values()) {
                client.signal(FaultRig.TERM);
                stage.await(client.name() + " on the small file system", client.process());
            }
            survived = stage.outcome().faults().isEmpty();
        } finally {
            clients.values().forEach(client -> {
                client.close();
                small.ledger().remove(client.page());
            });
            smallDisk.played(survived).forEach(stage::problem);
        }
    }

    /** Until the journal has met the end of the space, or for four times the drawn length. */
    private void awaitFullJournal(final FaultRig small) throws InterruptedException {
        final long untilNs = stage.struckNs() + FULL_LENGTHS * stage.round().lengthMs() * NS_PER_MS;
        while (System.nanoTime() - untilNs < 0
            && small.status().path("daemon").path("journal_failure").asText().isEmpty()) {
            TimeUnit.MILLISECONDS.sleep(LOOK_MS);
        }
    }

    private static void fill(final Path file) throws IOException {
        final byte[] zeros = new byte[BYTES_PER_FILL];
        try (OutputStream to = Files.newOutputStream(file)) {
            for (int size = zeros.length; size > 0;) {
                try {
                    to.write(zeros, 0, size);
                } catch (final IOException e) {
                    size /= 2;   // no space: down to the last byte
                }
            }
        }
    }
}
