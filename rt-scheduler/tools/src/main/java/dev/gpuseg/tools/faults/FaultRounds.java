/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Plays rounds of the fault campaign. Three clients stay over all of them and must go on whatever happens: two best
 * effort, one real time. Each round starts its victims, lets the fault strike, repairs what an operator or systemd
 * would repair (a dead daemon is started again), and judges.
 */
public final class FaultRounds implements AutoCloseable {
    /** Longest window of a victim's segment; demotion follows. Well below the watchdog's period. */
    static final int BUDGET_MS = 30;

    // These tell a hang from a machine that is slow, no more: freezes are measured to the microsecond beside.
    private static final int EXIT_S = 20;
    private static final int GO_ON_MS = 15_000;
    private static final int GO_ON_JOBS = 3;
    private static final int SETTLE_MS = 15_000;
    private static final int STATE_MS = 15_000;
    private static final int NOTICE_MS = 15_000;
    private static final int FINE_DELAY_US = 20;
    private static final int STOPS_MAX = 20;
    private static final long NS_PER_MS = 1_000_000;
    private static final long NS_PER_S = 1_000_000_000;
    private static final int BYTES_PER_FILL = 1 << 16;
    private static final String SMALL_FILE_SYSTEM = "24m";
    private static final String INNOCENT = "innocent";
    private static final int LEAST_MIB = 48;
    private static final int MIB = 128;
    private static final int START_MS = 10_000;
    private static final int MOST_TIMES = 2;
    private static final long[] CLOCK_STEPS_S = {1, -1, 3_600, -3_600, 86_400, -86_400, 315_360_000, -315_360_000};

    private final Path base;
    private final Path out;
    private final int periodMs;
    private final boolean root;
    private final FaultRig rig;
    private final Map<String, FaultClient> residents = new HashMap<>();
    private final Attacks attacks;
    private int exhausted;

    private Round round;
    private List<String> problems;
    private List<FaultClient> victims;
    private long lost;
    private int hung;
    private long struckNs;
    private long overNs;
    private long freezeNs;
    private String skipped;

    /**
     * Starts virtual GPU, daemon and the clients that stay.
     *
     * @param base     a directory in memory, existing and empty
     * @param out      a directory for journal and messages, existing
     * @param periodMs of the watchdog; 0: none
     * @param hostile  whether attacks are played
     */
    public FaultRounds(final Path base, final Path out, final int periodMs, final boolean hostile) throws IOException,
        InterruptedException {
        this.base = base;
        this.out = out;
        this.periodMs = periodMs;
        root = ProcessStatus.effectiveUid() == 0;
        rig = new FaultRig(Files.createDirectory(base.resolve("main")), out.resolve("journal"), out, "", periodMs);
        attacks = hostile ? new Attacks(rig, base, out) : null;
        try {
            rig.startDaemon();
            for (final String name : List.of("background", "steady", "camera")) {
                residents.put(name, resident(rig, name));
            }
            if (hostile) {
                residents.put(INNOCENT, attacks.innocent());
                attacks.measure(residents.get(INNOCENT), rig.journal());
            }
        } catch (final InterruptedException | RuntimeException e) {
            rig.close();
            throw e;
        }
    }

    private static FaultClient resident(final FaultRig on, final String name) {
        final List<String> options = switch (name) {
            case "background" -> List.of("--period", "4ms", "--segments", "gpu:0ms+1ms");
            case "steady" -> List.of("--period", "10ms", "--segments", "gpu:200us+2ms,cpu:500us");
            default -> List.of("--period", "25ms", "--segments", "gpu:500us+3ms", "--priority", "60", "--always-wait",
                "--budget", BUDGET_MS + "ms");
        };
        return on.client(name, List.of(), options);
    }

    /** Plays a round and judges it. */
    public Tally.Outcome play(final Round next) throws IOException, InterruptedException, TimeoutException {
        round = next;
        problems = new ArrayList<>();
        victims = new ArrayList<>();
        lost = 0;
        hung = 0;
        freezeNs = 0;
        skipped = "";
        rig.operations().read();
        rig.operations().startAnew();
        rig.ledger().read();
        rig.ledger().startAnew();
        struckNs = System.nanoTime();
        overNs = struckNs;
        try {
            strike();
            if (skipped.isEmpty() && next.fault() != Fault.FULL_DISK) {
                judge(rig, residents);
            }
        } catch (final IllegalStateException e) {
            problems.add(e.getMessage());
            hung++;
            restoreDaemon();
        }
        for (final FaultClient victim : victims) {
            victim.close();
        }
        return new Tally.Outcome(round, skipped, lost, hung, freezeNs, problems);
    }

    private void strike() throws IOException, InterruptedException, TimeoutException {
        switch (round.fault()) {
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
            case KILL_BOTH -> killBoth();
            case READ_ONLY -> readOnly();
            case OUT_OF_MEMORY -> outOfMemory();
            case FLOOD_STATUS, FLOOD_COMMANDS, FLOOD_CONNECTIONS, FLOOD_OPENS, FLOOD_RECORDS, FLOOD_PROCESSES, HOLD_GPU,
                FORGE_MEMORY, FORGE_FILES, FAKE_DEVICES, FIFO_HOG -> attack();
            default -> throw new IllegalStateException("fault " + round.fault());
        }
    }

    // ---- the faults -----------------------------------------------------------------------------------------------

    private FaultClient victim(final String... options) {
        return victim(List.of(), options);
    }

    private FaultClient victim(final List<String> start, final String... options) {
        final FaultClient client = rig.client("victim", start, Arrays.asList(options));
        victims.add(client);
        return client;
    }

    /** One that is in the wanted step often: above the resident camera, or below it where it has to wait. */
    private FaultClient realTimeVictim(final String... more) {
        final List<String> options = new ArrayList<>(List.of("--period", "30ms", "--segments", "gpu:4ms+10ms",
            "--always-wait", "--budget", BUDGET_MS + "ms", "--priority", round.step() == Step.WAITING ? "40" : "80"));
        options.addAll(Arrays.asList(more));
        return victim(options.toArray(new String[0]));
    }

    /** Waits for the round's step, then for the drawn delay: milliseconds, or fractions where the step is short. */
    private void awaitStep(final FaultClient victim) throws InterruptedException {
        final int state = switch (round.step()) {
            case RESTING -> Abi.PROGRESS_RESTING;
            case WAITING -> Abi.PROGRESS_WAITING;
            case HOLDING -> Abi.PROGRESS_HOLDING;
            case KERNEL -> Abi.PROGRESS_KERNEL;
            default -> -1;
        };
        if (state < 0) {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
        } else if (victim.await(() -> victim.page().jobs() > 0, STATE_MS) && victim.awaitState(state, STATE_MS)) {
            TimeUnit.MICROSECONDS.sleep((long) round.delayMs() * FINE_DELAY_US);
        } else {
            throw new IllegalStateException(victim.name() + " never came to " + round.step() + ": "
                + victim.process().said());
        }
    }

    private void struck() {
        struckNs = System.nanoTime();
        overNs = struckNs;
    }

    private void over() {
        overNs = System.nanoTime();
    }

    private void killClient() throws InterruptedException {
        final FaultClient victim = round.variant() % 3 == 0 && round.step() != Step.WAITING
            ? victim("--period", "15ms", "--segments", "gpu:2ms+5ms") : realTimeVictim();
        awaitStep(victim);
        struck();
        victim.signal(FaultRig.KILL);
    }

    private void killGpuUser() throws InterruptedException {
        final FaultClient victim = victim("--unmanaged", "--period", "15ms", "--segments", "gpu:1ms+8ms");
        awaitStep(victim);
        struck();
        victim.signal(FaultRig.KILL);
    }

    /** A real-time client that holds the GPU for 60 ms: until then the others are disabled. */
    private FaultClient awaitHeld() throws InterruptedException {
        final FaultClient holder = victim("--period", "200ms", "--segments", "gpu:0ms+60ms", "--priority", "80",
            "--budget", "90ms", "--always-wait");
        awaitHeld(holder);
        return holder;
    }

    private void awaitHeld(final FaultClient holder) throws InterruptedException {
        if (!holder.await(() -> holder.page().state() == Abi.PROGRESS_KERNEL && rig.held() > 0, STATE_MS)) {
            throw new IllegalStateException("nothing is held although " + holder.name() + " has the GPU");
        }
        TimeUnit.MICROSECONDS.sleep((long) round.delayMs() * FINE_DELAY_US);
    }

    private void killDaemon() throws InterruptedException, TimeoutException {
        Child newcomer = null;
        if (round.step() == Step.HELD) {
            awaitHeld();
        } else if (round.step() == Step.REGISTERING) {
            newcomer = registering();
            TimeUnit.MILLISECONDS.sleep(round.delayMs() / 2);
        } else {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
        }
        struck();
        rig.killDaemon();
        if (round.step() == Step.STARTING) {
            awaitNotice();
            final Child successor = rig.launchDaemon();
            TimeUnit.MILLISECONDS.sleep(round.variant() + round.delayMs());
            ProcessStatus.signal((int) successor.pid(), FaultRig.KILL);
            successor.awaitExit(EXIT_S);
        }
        daemonWent();
        if (newcomer != null) {
            await("a client that registered while the daemon was killed", newcomer);
        }
    }

    /** A client that has just been started: whatever becomes of it, it must not stay in the middle. */
    private Child registering() {
        return Child.start("registering", List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.outside().toString(), "--name", "registering", "--period", "5ms", "--segments", "gpu:0ms+1ms",
            "--duration", "500ms"), out.resolve("registering.err"));
    }

    private void await(final String what, final Child child) throws InterruptedException {
        try {
            child.awaitExit(EXIT_S);
        } catch (final TimeoutException e) {
            hung++;
            problems.add(what + ": " + e.getMessage());
            child.close();
        }
    }

    /** Every client that lives has noticed that its daemon is gone. */
    private void awaitNotice() throws InterruptedException {
        final List<FaultClient> all = new ArrayList<>(residents.values());
        all.addAll(victims);
        for (final FaultClient client : all) {
            Polling.until(() -> !client.isAlive() || !client.page().isManaged(), NOTICE_MS);
        }
    }

    /** Starts the next daemon, and takes out of the account what the former had not read. */
    private void daemonWent() throws InterruptedException {
        awaitNotice();
        rig.ledger().ask();
        // not just one start more: that of a daemon killed before may be in its ring only, and be journaled now
        final long launchedNs = System.nanoTime();
        rig.startDaemon();
        if (!Polling.until(() -> lastStartNs(rig.ledger()) - launchedNs > 0, SETTLE_MS)) {
            problems.add("the journal does not show the start of the next daemon");
        }
        final long missing = rig.ledger().daemonWent();
        lost += missing;
        if (missing > 0) {
            problems.add(missing + " begins that the former daemon had answered are not in the journal");
        }
    }

    private static long lastStartNs(final Ledger ledger) {
        ledger.read();
        return ledger.lastStartNs();
    }

    /** Kills the daemon's watchdog in the round's step; 0 = it has none, else the pid that it had. */
    private int strikeWatchdog() throws InterruptedException {
        final int pid = rig.status().path("daemon").path("watchdog_pid").asInt();
        if (pid == 0) {
            skipped = "the daemon runs without a watchdog";
            return 0;
        }
        if (round.step() == Step.HELD) {
            awaitHeld();
        } else {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
        }
        struck();
        ProcessStatus.signal(pid, FaultRig.KILL);
        return pid;
    }

    private void killWatchdog() throws InterruptedException {
        final int pid = strikeWatchdog();
        if (pid == 0) {
            return;
        }
        if (!Polling.until(() -> rig.status().path("daemon").path("watchdog_pid").asInt() != pid, GO_ON_MS)) {
            hung++;
            problems.add("the daemon did not start another watchdog");
        }
    }

    private void stopClient() throws InterruptedException {
        final FaultClient victim = realTimeVictim();
        awaitStep(victim);
        struck();
        victim.signal(FaultRig.STOP);
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        final List<FaultClient> others = new ArrayList<>(residents.values());
        goOn(others, "while a client is stopped");
        over();
        victim.signal(FaultRig.CONT);
        goOn(List.of(victim), "after it was stopped");
    }

    private void stopDaemon() throws InterruptedException {
        if (round.step() == Step.HELD) {
            stopDaemonThatHolds();
        } else {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
            struck();
            rig.signalDaemon(FaultRig.STOP);
        }
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        over();
        rig.signalDaemon(FaultRig.CONT);
    }

    /** On a slow machine the holder may be through before the signal arrives: then it goes on, and once more. */
    private void stopDaemonThatHolds() throws InterruptedException {
        final FaultClient holder = awaitHeld();
        for (int i = 0; i < STOPS_MAX; i++) {
            struck();
            rig.signalDaemon(FaultRig.STOP);
            TimeUnit.MILLISECONDS.sleep(1);
            if (rig.held() > 0) {
                return;
            }
            rig.signalDaemon(FaultRig.CONT);
            awaitHeld(holder);
        }
        throw new IllegalStateException("the daemon held nothing at any of " + STOPS_MAX + " stops");
    }

    private void truncateQueue() throws IOException, InterruptedException {
        final FaultClient victim = victim("--period", "2ms", "--segments", "gpu:0ms+100us");
        rig.ledger().exclude(victim.pid());
        victim.await(() -> victim.page().jobs() > 2, STATE_MS);
        TimeUnit.MILLISECONDS.sleep(round.delayMs());
        struck();
        int files = 0;
        try (DirectoryStream<Path> clients = Files.newDirectoryStream(rig.outside().resolve("clients"),
            "*-" + victim.pid())) {
            for (final Path client : clients) {
                try (DirectoryStream<Path> queue = Files.newDirectoryStream(client.resolve("queue"),
                    round.variant() % 4 == 0 ? "*.cq4t" : "*.cq4")) {
                    for (final Path file : queue) {
                        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                            channel.truncate(channel.size() * (round.variant() % 3) / 3);
                            files++;
                        }
                    }
                }
            }
        }
        if (files == 0) {
            throw new IllegalStateException("no queue file of process " + victim.pid() + " was found to truncate");
        }
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        over();
    }

    private void rollUnderLoad() throws InterruptedException {
        final FaultClient victim = victim("--period", "100us", "--segments", "gpu:0ms+0ms", "--duration", "60s");
        TimeUnit.MILLISECONDS.sleep(round.delayMs());
        struck();
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        over();
        if (round.variant() % 2 == 0) {
            victim.signal(FaultRig.KILL);
        } else {
            goOn(List.of(victim), "under load");
            victim.signal(FaultRig.TERM);
        }
    }

    private void upgradeDaemon() throws InterruptedException, TimeoutException {
        if (round.step() == Step.HELD) {
            awaitHeld();
        } else {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
        }
        struck();
        final int status = rig.stopDaemon();
        if (status != 0 || rig.held() != 0) {
            problems.add("clean stop with status " + status + ", " + rig.held() + " contexts held: "
                + rig.daemon().said());
        }
        daemonWent();
    }

    private void stepClock() throws IOException, InterruptedException {
        TimeUnit.MILLISECONDS.sleep(round.delayMs());
        struck();
        rig.stepClock(CLOCK_STEPS_S[round.variant() % CLOCK_STEPS_S.length] * NS_PER_S);
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        goOn(new ArrayList<>(residents.values()), "after the clock was stepped");
        over();
    }

    private void foreignClock() throws InterruptedException {
        if (!root) {
            skipped = "a time namespace needs root";
            return;
        }
        final long before = AdminClient.counter(rig.status(), "poisoned");
        struck();
        final FaultClient victim = victim(List.of("unshare", "--time", "--monotonic", "3600"), "--period", "5ms",
            "--segments", "gpu:0ms+1ms");
        rig.ledger().exclude(victim.pid());
        if (!Polling.until(() -> AdminClient.counter(rig.status(), "poisoned") > before, NOTICE_MS)) {
            problems.add("a client that is an hour ahead was not dropped");
        }
        over();
    }

    private void reusePid() throws InterruptedException, TimeoutException {
        if (!root) {
            skipped = "choosing a pid needs root";
            return;
        }
        final FaultClient first = realTimeVictim();
        awaitStep(first);
        struck();
        first.signal(FaultRig.KILL);
        final FaultClient second = victim(List.of(NativePrograms.named("gpuseg-as-pid").toString(),
            Integer.toString(first.pid())), "--period", "10ms", "--segments", "gpu:0ms+2ms", "--priority", "70");
        if (second.pid() != first.pid()) {
            throw new IllegalStateException("pid " + first.pid() + " was not given out again");
        }
        goOn(List.of(second), "with the pid of a killed client");
        second.signal(FaultRig.TERM);
    }

    private void fork() throws InterruptedException {
        final FaultClient victim = realTimeVictim("--on-usr2", "fork");
        awaitStep(victim);
        victim.signal(FaultRig.USR2);
        TimeUnit.MILLISECONDS.sleep(2);
        struck();
        victim.signal(FaultRig.KILL);
    }

    private void exec() throws InterruptedException {
        final FaultClient victim = realTimeVictim("--on-usr2", "exec");
        awaitStep(victim);
        struck();
        victim.signal(FaultRig.USR2);
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
    }

    private void infiniteKernel() throws InterruptedException {
        final FaultClient victim = victim("--period", "1s", "--segments", "gpu:0ms+1000s", "--priority", "80",
            "--budget", BUDGET_MS + "ms");
        if (!victim.awaitState(Abi.PROGRESS_KERNEL, STATE_MS)) {
            throw new IllegalStateException("the infinite kernel does not begin: " + victim.process().said());
        }
        struck();
        goOn(new ArrayList<>(residents.values()), "beside an infinite kernel");
        TimeUnit.MILLISECONDS.sleep(round.lengthMs());
        over();
        victim.signal(FaultRig.KILL);
    }

    /** A rig of its own on a small file system, which is filled to the last byte and emptied again. */
    private void fullDisk() throws IOException, InterruptedException, TimeoutException {
        if (!root) {
            skipped = "mounting a small file system needs root";
            return;
        }
        final Path own = Files.createDirectory(base.resolve("small-" + round.number()));
        try (FaultRig small = new FaultRig(own, null, out, SMALL_FILE_SYSTEM, periodMs)) {
            small.startDaemon();
            final Map<String, FaultClient> clients = new HashMap<>();
            for (final String name : List.of("background", "steady", "camera")) {
                clients.put(name, resident(small, name));
            }
            goOn(new ArrayList<>(clients.values()), "before the disk is full");
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
            struck();
            final Path filler = small.outside().resolve("filler");
            fill(filler);
            if (round.step() == Step.REGISTERING) {
                final Child newcomer = Child.start("newcomer", List.of("nsenter",
                    "--mount=/proc/" + small.daemon().pid() + "/ns/mnt", "--",
                    NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
                    own.resolve("run").toString(), "--name", "newcomer", "--period", "5ms", "--segments",
                    "gpu:0ms+1ms", "--duration", "100ms"), out.resolve("newcomer.err"));
                await("a client that registered on a full disk", newcomer);
            }
            TimeUnit.MILLISECONDS.sleep(4L * round.lengthMs());
            goOn(new ArrayList<>(clients.values()), "while the disk is full");
            Files.delete(filler);
            over();
            judge(small, clients);
            if (small.stopDaemon() != 0) {
                problems.add("on the small file system: the daemon did not stop cleanly: " + small.daemon().said());
            }
            small.stopGpu();
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

    // ---- the attacks ----------------------------------------------------------------------------------------------

    private void attack() throws IOException, InterruptedException, TimeoutException {
        struck();
        skipped = attacks.play(round);
        over();
        if (!rig.daemon().isAlive()) {
            exhausted++;
            problems.add("the daemon ended: " + rig.daemon().said());
            daemonWent();
        }
        if (skipped.isEmpty()) {
            attacks.measure(round.fault(), attacks.beganNs(), overNs);
        }
    }

    private void killBoth() throws InterruptedException, TimeoutException {
        if (strikeWatchdog() == 0) {
            return;
        }
        rig.killDaemon();
        rig.release();   // what ExecStopPost= of the service does
        over();
        daemonWent();
    }

    /** Beside the daemon that runs: another one, which must say in one line why it does not start. */
    private void readOnly() throws IOException, InterruptedException, TimeoutException {
        if (!root) {
            skipped = "mounting a file system needs root";
            return;
        }
        final Path own = Files.createDirectory(base.resolve("read-only-" + round.number()));
        struck();
        final List<String> command = new ArrayList<>(List.of("unshare", "--mount", "sh", "-c",
            "mount -t tmpfs -o ro gpuseg-faults \"$0\" && exec \"$@\"", own.toString()));
        command.addAll(JavaCommand.daemon("--dir", own.toString(), "--mechanism", "gate", "--no-warm-up"));
        try (Child refused = Child.start("read-only", command, out.resolve("read-only.err"))) {
            final int status = refused.awaitExit(EXIT_S);
            if (status != ExitCode.FAILURE || !refused.said().contains(own.toString())) {
                problems.add("on a read-only file system the daemon ends with status " + status + ": "
                    + refused.said());
            }
        }
        over();
    }

    /** The next daemon is killed by the kernel at its start, or later, or has just enough; its successor serves. */
    private void outOfMemory() throws IOException, InterruptedException, TimeoutException {
        final Optional<MemoryGroup> made = root ? MemoryGroup.create("gpuseg-faults-" + ProcessStatus.pid(),
            LEAST_MIB + round.variant() % MIB) : Optional.empty();
        if (made.isEmpty()) {
            skipped = "no control group with a limit of memory can be made";
            return;
        }
        try (MemoryGroup group = made.get()) {
            if (round.step() == Step.HELD) {
                awaitHeld();
            }
            struck();
            rig.killDaemon();
            awaitNotice();
            final Child poor = rig.launchDaemon(group.prefix());
            Polling.until(() -> !poor.isAlive() || poor.said().contains("ready"), START_MS);
            if (poor.isAlive()) {
                attacks.play(round);
                ProcessStatus.signal((int) poor.pid(), FaultRig.KILL);
            }
            poor.awaitExit(EXIT_S);
            daemonWent();
        }
    }

    /**
     * How the honest client fared, and how many daemons ended under attack.
     *
     * @param to receives {@code innocent_p99_ms, innocent_undisturbed_p99_ms, innocent_segments, innocent_misses,
     *           daemons_exhausted}
     * @return whether no daemon ended and the honest client's p99 was at most twice its undisturbed value
     */
    public boolean describeAttacks(final ObjectNode to) {
        final Responses responses = attacks.responses();
        to.put("innocent_p99_ms", responses.attackedP99Ms());
        to.put("innocent_undisturbed_p99_ms", responses.undisturbedP99Ms());
        to.put("innocent_segments", responses.attackedCount());
        to.put("innocent_misses", responses.misses());
        to.put("daemons_exhausted", exhausted);
        responses.p99Ms().forEach((fault, p99Ms) ->
            ((ObjectNode) to.path("by_fault").path(fault.label())).put("innocent_p99_ms", p99Ms));
        return exhausted == 0 && responses.attackedP99Ms() <= MOST_TIMES * responses.undisturbedP99Ms();
    }

    // ---- the judgement --------------------------------------------------------------------------------------------

    /** Every client must complete some jobs, scheduled by a daemon. */
    private void goOn(final List<FaultClient> clients, final String when) throws InterruptedException {
        for (final FaultClient client : clients) {
            final long jobs = client.page().jobs();
            if (!client.await(() -> client.page().jobs() >= jobs + GO_ON_JOBS && client.page().isManaged(),
                GO_ON_MS)) {
                hung++;
                problems.add(client.name() + " does not go on " + when + ": "
                    + (client.isAlive() ? client.page().jobs() - jobs + " jobs in " + GO_ON_MS + " ms, "
                    + (client.page().isManaged() ? "managed" : "unmanaged") : "it ended") + "; "
                    + client.process().said());
            }
        }
    }

    private void judge(final FaultRig on, final Map<String, FaultClient> clients) throws IOException,
        InterruptedException {
        goOn(new ArrayList<>(clients.values()), "afterwards");
        for (final FaultClient victim : victims) {
            victim.close();   // what it holds is released
        }
        settle(on);
        account(on);
        freezeNs = on.operations().longestNs(struckNs, overNs, System.nanoTime(), livingHolders(on, clients));
        final JsonNode status = on.status();
        for (final String label : List.of("cycle_errors", "journal_drops")) {
            if (AdminClient.counter(status, label) > 0) {
                problems.add(label + " is " + AdminClient.counter(status, label));
            }
        }
        for (final String name : List.copyOf(clients.keySet())) {
            if (!clients.get(name).isAlive() && on == rig) {
                clients.put(name, name.equals(INNOCENT) ? attacks.innocent() : resident(on, name));
                if (name.equals(INNOCENT)) {
                    attacks.follow(clients.get(name));
                }
            }
        }
    }

    /** At some instant nothing is held and nothing disabled: then every freeze is over. */
    private void settle(final FaultRig on) throws IOException, InterruptedException {
        final long untilNs = System.nanoTime() + SETTLE_MS * NS_PER_MS;
        while (true) {
            on.operations().read();
            if (on.operations().disabled() == 0 && on.held() == 0) {
                break;
            }
            if (System.nanoTime() - untilNs > 0) {
                problems.add(on.operations().disabled() + " contexts are disabled and " + on.held()
                    + " held, all the time");
                hung++;
                break;
            }
            TimeUnit.MICROSECONDS.sleep(FINE_DELAY_US);
        }
    }

    /** A holder is no excuse for a daemon that is gone: it cannot have the others enabled when the holder ends. */
    private List<Ledger.Window> livingHolders(final FaultRig on, final Map<String, FaultClient> clients) {
        return switch (round.fault()) {
            case KILL_DAEMON, STOP_DAEMON, UPGRADE_DAEMON, KILL_BOTH, OUT_OF_MEMORY -> List.of();
            // attackers, and the honest client, hold the GPU by right, each for the length of a budget at most
            default -> attacks != null ? on.ledger().windows()
                : on.ledger().windowsOf(clients.get("camera").pid());
        };
    }

    private void account(final FaultRig on) throws InterruptedException {
        final Ledger ledger = on.ledger();
        final long reported = reportedLosses(on);
        ledger.ask();
        Polling.until(() -> ledger.missing() == 0, SETTLE_MS);
        final StringBuilder who = new StringBuilder();
        final long missing = ledger.missing(who);
        if (missing > 0) {
            lost += missing;
            problems.add(missing + " acknowledged records are not in the journal:" + who + " the daemon reports "
                + reported + " lost events, " + ledger.gaps() + " sequence numbers are missing");
        }
        if (ledger.gaps() > 0 && missing == 0) {
            problems.add(ledger.gaps() + " sequence numbers are missing in the journal");
            lost += ledger.gaps();
        }
        ledger.writeOff();
        victims.forEach(victim -> ledger.remove(victim.page()));
    }

    private static long reportedLosses(final FaultRig on) {
        final JsonNode status = on.status();
        return status.path("daemon").path("journal_lost").asLong() + AdminClient.counter(status, "journal_drops");
    }

    /** After a round that broke off: whatever state the daemon is in, the next round finds one. */
    private void restoreDaemon() throws InterruptedException, TimeoutException {
        if (rig.daemon().isAlive()) {
            rig.signalDaemon(FaultRig.CONT);
            try {
                rig.status();
                return;
            } catch (final IllegalStateException e) {
                problems.add("the daemon is killed, for it does not answer: " + rig.daemon().said());
                rig.killDaemon();
            }
        }
        daemonWent();
    }

    /**
     * The end of the campaign: every client leaves in order.
     *
     * @return what was not as it must be, one line each
     */
    public List<String> finish() throws InterruptedException, TimeoutException {
        problems = new ArrayList<>();
        for (final FaultClient client : residents.values()) {
            client.signal(FaultRig.TERM);
            client.process().awaitExit(EXIT_S);
        }
        final int status = rig.stopDaemon();
        if (status != 0 || rig.held() != 0) {
            problems.add("clean stop with status " + status + ", " + rig.held() + " contexts held: "
                + rig.daemon().said());
        }
        final String gpu = rig.stopGpu();
        if (!gpu.contains("ran while disabled 0;")) {
            problems.add("the virtual GPU says: " + gpu);
        }
        return problems;
    }

    @Override
    public void close() {
        if (attacks != null) {
            attacks.close();
        }
        rig.close();
    }
}
