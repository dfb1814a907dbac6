/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Where the rounds are played, and what is known of the round that is: the clients that stay, the victims of this
 * round, when the fault struck, and what was not as it must be. One thread.
 */
final class Stage {
    static final int HANG_MS = FaultRig.HANG_S * 1_000;
    static final int FINE_DELAY_US = 20;
    /** Longest window of a victim's segment; demotion follows. Well below the watchdog's period. */
    static final int BUDGET_MS = 30;

    private static final int GO_ON_JOBS = 3;
    /** How long three jobs of the slowest client that stays take. */
    private static final int GO_ON_TYPICAL_MS = 75;
    private static final long NS_PER_MS = 1_000_000;

    private final FaultRig rig;
    private final Path base;
    private final Path out;
    private final int periodMs;
    private final boolean root;
    private final Map<String, FaultClient> residents = new HashMap<>();

    private Round round;
    private List<String> problems;
    private List<FaultClient> victims;
    private long lost;
    private int hung;
    private long beganNs;
    private long struckNs;
    private long overNs;
    private long freezeNs;
    private String skipped;
    private final Map<FaultClient, String> alsoGoOn = new LinkedHashMap<>();

    /**
     * @param rig      on which the rounds are played
     * @param base     a directory in memory, existing
     * @param out      a directory for messages, existing
     * @param periodMs of the watchdog; 0: none
     */
    Stage(final FaultRig rig, final Path base, final Path out, final int periodMs) {
        this.rig = rig;
        this.base = base;
        this.out = out;
        this.periodMs = periodMs;
        root = ProcessStatus.effectiveUid() == 0;
    }

    // ---- the round ------------------------------------------------------------------------------------------------

    /** Another round begins. */
    void begin(final Round next) {
        round = next;
        beganNs = System.nanoTime();
        problems = new ArrayList<>();
        victims = new ArrayList<>();
        lost = 0;
        hung = 0;
        freezeNs = 0;
        skipped = "";
        alsoGoOn.clear();
        struck();
    }

    Round round() {
        return round;
    }

    FaultRig rig() {
        return rig;
    }

    Path base() {
        return base;
    }

    Path out() {
        return out;
    }

    int periodMs() {
        return periodMs;
    }

    boolean isRoot() {
        return root;
    }

    /** The clients that stay, by name. */
    Map<String, FaultClient> residents() {
        return residents;
    }

    List<FaultClient> victims() {
        return victims;
    }

    long struckNs() {
        return struckNs;
    }

    long overNs() {
        return overNs;
    }

    /** Something was not as it must be. */
    void problem(final String what) {
        problems.add(what);
    }

    /** Something did not go on. */
    void hung(final String what) {
        hung++;
        problems.add(what);
    }

    /** Acknowledged records are nowhere. */
    void lost(final long records, final String what) {
        lost += records;
        problems.add(what);
    }

    /** The fault cannot be played here, or it was: then the reason is empty. */
    void skip(final String reason) {
        skipped = reason;
    }

    boolean isSkipped() {
        return !skipped.isEmpty();
    }

    /** A context was disabled for so long since the fault, in ns. */
    void froze(final long longestNs) {
        freezeNs = Math.max(freezeNs, longestNs);
    }

    /** What came of the round. */
    Tally.RoundResult outcome() {
        return new Tally.RoundResult(round, skipped, lost, hung, freezeNs, System.nanoTime() - beganNs, problems);
    }

    // ---- clients --------------------------------------------------------------------------------------------------

    static FaultClient resident(final FaultRig on, final String name) {
        final List<String> options = switch (name) {
            case "background" -> List.of("--period", "4ms", "--segments", "gpu:0ms+1ms");
            case "steady" -> List.of("--period", "10ms", "--segments", "gpu:200us+2ms,cpu:500us");
            default -> List.of("--period", "25ms", "--segments", "gpu:500us+3ms", "--priority", "60", "--always-wait",
                "--budget", BUDGET_MS + "ms");
        };
        final List<String> all = new ArrayList<>(FaultRig.STAYS);
        all.addAll(options);
        return on.client(name, List.of(), all);
    }

    /** A client of this round, which the fault may strike. */
    FaultClient victim(final String... options) {
        return victim(List.of(), options);
    }

    FaultClient victim(final List<String> start, final String... options) {
        final FaultClient client = rig.client("victim", start, Arrays.asList(options));
        victims.add(client);
        return client;
    }

    /** One that is in the wanted step often: above the resident camera, or below it where it has to wait. */
    FaultClient realTimeVictim(final String... more) {
        final List<String> options = new ArrayList<>(List.of("--period", "30ms", "--segments", "gpu:4ms+10ms",
            "--always-wait", "--budget", BUDGET_MS + "ms", "--priority", round.step() == Step.WAITING ? "40" : "80"));
        options.addAll(Arrays.asList(more));
        return victim(options.toArray(new String[0]));
    }

    /** Waits for the round's step, then for the drawn delay: milliseconds, or fractions where the step is short. */
    void awaitStep(final FaultClient victim) throws InterruptedException {
        final int state = switch (round.step()) {
            case RESTING -> Abi.PROGRESS_RESTING;
            case WAITING -> Abi.PROGRESS_WAITING;
            case HOLDING -> Abi.PROGRESS_HOLDING;
            case KERNEL -> Abi.PROGRESS_KERNEL;
            default -> -1;
        };
        if (state < 0) {
            TimeUnit.MILLISECONDS.sleep(round.delayMs());
        } else if (victim.await(() -> victim.page().jobs() > 0, HANG_MS) && victim.awaitState(state, HANG_MS)) {
            TimeUnit.MICROSECONDS.sleep((long) round.delayMs() * FINE_DELAY_US);
        } else {
            throw new IllegalStateException(victim.name() + " never came to " + round.step() + ": "
                + victim.process().said());
        }
    }

    /** The fault strikes now. */
    void struck() {
        struckNs = System.nanoTime();
        overNs = struckNs;
    }

    /** Lets the fault last until some time before its drawn length is over. */
    void lasts(final long lessMs) throws InterruptedException {
        final long untilNs = struckNs + (round.lengthMs() - lessMs) * NS_PER_MS;
        for (long leftNs = untilNs - System.nanoTime(); leftNs > 0; leftNs = untilNs - System.nanoTime()) {
            TimeUnit.NANOSECONDS.sleep(leftNs);
        }
    }

    /** Others must go on while the fault lasts: asked at the end of its drawn length, and over not before that. */
    void othersGoOn(final String when) throws InterruptedException {
        lasts(GO_ON_TYPICAL_MS);
        goOn(new ArrayList<>(residents.values()), when);
        lasts(0);
    }

    /** The fault is over; what is disabled from now on is not its doing. */
    void over() {
        overNs = System.nanoTime();
    }

    /** A real-time client that holds the GPU for 60 ms: until then the others are disabled. */
    FaultClient awaitHeld() throws InterruptedException {
        final FaultClient holder = victim("--period", "200ms", "--segments", "gpu:0ms+60ms", "--priority", "80",
            "--budget", "90ms", "--always-wait");
        awaitHeld(holder);
        return holder;
    }

    /** Until it has the GPU and the others are disabled, then for the drawn delay. */
    void awaitHeld(final FaultClient holder) throws InterruptedException {
        if (!holder.await(() -> holder.page().state() == Abi.PROGRESS_KERNEL && rig.held() > 0, HANG_MS)) {
            throw new IllegalStateException("nothing is held although " + holder.name() + " has the GPU");
        }
        TimeUnit.MICROSECONDS.sleep((long) round.delayMs() * FINE_DELAY_US);
    }

    /** A process must end within the time that tells a hang from a slow machine. */
    void await(final String what, final Child child) throws InterruptedException {
        try {
            child.awaitExit(FaultRig.HANG_S);
        } catch (final TimeoutException e) {
            hung(what + ": " + e.getMessage());
            child.close();
        }
    }

    /** Every client that lives has noticed that its daemon is gone. */
    void awaitNotice() throws InterruptedException {
        final List<FaultClient> all = new ArrayList<>(residents.values());
        all.addAll(victims);
        for (final FaultClient client : all) {
            Polling.until(() -> !client.isAlive() || !client.page().isManaged(), HANG_MS);
        }
    }

    /** Starts the next daemon, and takes out of the account what the former had not read. */
    void daemonWent() throws InterruptedException {
        awaitNotice();
        rig.ledger().ask();
        // not just one start more: that of a daemon killed before may be in its ring only, and be journaled now
        final long launchedNs = System.nanoTime();
        rig.startDaemon();
        if (!Polling.until(() -> lastStartNs(rig.ledger()) - launchedNs > 0, HANG_MS)) {
            problem("the journal does not show the start of the next daemon");
        }
        final long missing = rig.ledger().daemonWent();
        if (missing > 0) {
            lost(missing, missing + " begins that the former daemon had answered are not in the journal");
        }
    }

    static long lastStartNs(final Ledger ledger) {
        ledger.read();
        return ledger.lastStartNs();
    }

    /** Kills the daemon's watchdog in the round's step; 0 = it has none, else the pid that it had. */
    int strikeWatchdog() throws InterruptedException {
        final int pid = rig.status().path("daemon").path("watchdog_pid").asInt();
        if (pid == 0) {
            skip("the daemon runs without a watchdog");
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

    /** One of the round that must go on like those that stay: asked together with them. */
    void alsoGoesOn(final FaultClient client, final String when) {
        alsoGoOn.put(client, when);
    }

    /** Every one of these, and of those that this round adds, goes on after the fault. */
    void goOnAfterwards(final List<FaultClient> clients) throws InterruptedException {
        final Map<FaultClient, String> all = new LinkedHashMap<>();
        clients.forEach(client -> all.put(client, "afterwards"));
        all.putAll(alsoGoOn);
        goOn(all);
    }

    void goOn(final List<FaultClient> clients, final String when) throws InterruptedException {
        final Map<FaultClient, String> all = new LinkedHashMap<>();
        clients.forEach(client -> all.put(client, when));
        goOn(all);
    }

    /** Every client must complete some jobs from now on, scheduled by a daemon. */
    private void goOn(final Map<FaultClient, String> clients) throws InterruptedException {
        final Map<FaultClient, Long> before = new HashMap<>();
        clients.keySet().forEach(client -> before.put(client, client.page().jobs()));
        for (final FaultClient client : clients.keySet()) {
            final long jobs = before.get(client);
            if (!client.await(() -> client.page().jobs() >= jobs + GO_ON_JOBS && client.page().isManaged(),
                HANG_MS)) {
                hung(client.name() + " does not go on " + clients.get(client) + ": "
                    + (client.isAlive() ? client.page().jobs() - jobs + " jobs in " + HANG_MS + " ms, "
                    + (client.page().isManaged() ? "managed" : "unmanaged") : "it ended") + "; "
                    + client.process().said() + "; " + Pressure.now());
            }
        }
    }
}
