/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The hostile user of the campaign, and the honest one beside him. Both are real users without privileges, members of
 * the socket's group: the hostile one has the priorities of any member, the honest one a right to higher ones. One
 * thread.
 */
final class Attacks implements AutoCloseable {
    /** Numbers that no user of a machine has. */
    private static final int HOSTILE = 65_531;
    private static final int HONEST = 65_532;

    private static final int INNOCENT_PRIORITY = 80;
    private static final int INNOCENT_THREAD = 60;
    private static final int HOG_PRIORITY = 40;
    private static final int ATTACKERS = 3;
    private static final int NOT_PERMITTED = 77;
    private static final int USAGE = 2;
    private static final int DID_NOT_BITE = 3;
    private static final int TURNS = 6;
    private static final int WHOLE_LENGTHS = 8;
    private static final int SHARE_PERCENT = 40;
    private static final int PERCENT = 100;
    /** On a slow machine an attack goes on for so long until it has done enough. */
    private static final int AT_MOST_MS = 3_000;
    /** How long the locks are held, unless the round is over before. */
    private static final int LOCKED_S = 30;
    private static final long NS_PER_MS = 1_000_000;
    private static final long PUNCTUAL_NS = 25 * NS_PER_MS;
    private static final int PUNCTUAL_LIMIT_MS = 30_000;
    private static final long WHOLE = 1000;
    /** As many as the attack has that writes records. */
    private static final String RECORD_THREADS = "4";
    private static final Pattern PROCESSOR_TIME = Pattern.compile("processor time (\\d+) ms");
    private static final int BASE_MODE = 0711;
    private static final int PROGRAM_MODE = 0755;

    private final FaultRig rig;
    private final Path out;
    private final Path program;
    private final Path demoTask;
    private final Path pages;
    private final String refusal;
    private Responses responses;
    private int started;

    /**
     * Makes what the users need. The daemon is started afterwards, with {@link #daemonOptions}.
     *
     * @param rig  on which it is played, without a daemon yet
     * @param base of the campaign, in memory
     * @param out  for what the attackers say
     */
    Attacks(final FaultRig rig, final Path base, final Path out) throws IOException {
        this.rig = rig;
        this.out = out;
        refusal = ProcessStatus.effectiveUid() != 0 ? "becoming another user needs root"
            : Files.isExecutable(Path.of("/usr/bin/setpriv")) ? "" : "setpriv (package util-linux) is missing";
        // other users find their way to the runtime directory, and cannot list what is beside it
        FileAccess.chmod(base, BASE_MODE);
        FileAccess.chmod(rig.outside().getParent(), BASE_MODE);
        final Path own = Files.createDirectory(base.resolve("users"));
        program = copy("gpuseg-hostile", own);
        demoTask = copy("gpuseg-demo-task", own);
        pages = Files.createDirectory(own.resolve("pages"));
        final Path limits = Files.createDirectory(own.resolve("limits.d"));
        Files.writeString(limits.resolve("campaign.conf"), HONEST + " priority " + INNOCENT_PRIORITY + "\n" + HONEST
            + " share 100%\n");
        rig.daemonSettings(List.of("limits: " + limits));
        if (refusal.isEmpty()) {
            FileAccess.chown(pages, HONEST, HONEST);
        }
    }

    private static Path copy(final String name, final Path to) throws IOException {
        final Path copy = Files.copy(NativePrograms.named(name), to.resolve(name));
        FileAccess.chmod(copy, PROGRAM_MODE);
        return copy;
    }

    /** What is started after it has the priority, whichever user it becomes. */
    private static List<String> fifo(final int priority) {
        return new ArrayList<>(List.of("chrt", "--fifo", Integer.toString(priority)));
    }

    /** Why there are no other users here, empty if there are. */
    String refusal() {
        return refusal;
    }

    private List<String> as(final int uid) throws IOException {
        final int group = (Integer) Files.getAttribute(rig.outside().resolve("gpuseg.sock"), "unix:gid");
        return List.of("setpriv", "--reuid=" + uid, "--regid=" + group, "--clear-groups", "--inh-caps=-all");
    }

    /** What the hostile user does meanwhile. */
    private static Fault attack(final Fault fault) {
        return fault.isProgram() ? fault : Fault.FLOOD_STATUS;
    }

    /** The honest client, of a user of his own where that is possible. */
    FaultClient innocent() throws IOException, InterruptedException {
        final boolean realTime = RealTime.isPermitted();
        final List<String> start = realTime ? fifo(INNOCENT_THREAD) : new ArrayList<>();
        if (refusal.isEmpty()) {
            start.addAll(as(HONEST));
        }
        final List<String> options = new ArrayList<>(FaultRig.STAYS);
        options.addAll(List.of("--period", "5ms", "--segments", "gpu:200us+1ms", "--priority",
            Integer.toString(INNOCENT_PRIORITY), "--budget", "5ms", "--always-wait", "--scheduling",
            realTime ? "fifo:" + INNOCENT_THREAD : "other"));
        return rig.client("innocent", start, demoTask, pages, options);
    }

    /** Begins to measure the honest client. */
    void measure(final FaultClient innocent, final Path journal) {
        responses = new Responses(journal);
        follow(innocent);
    }

    /** After a daemon was replaced the honest client is late; that is not the doing of the attack that follows. */
    private void awaitPunctual() throws InterruptedException {
        final boolean punctual = Polling.until(() -> {
            responses.read();
            return System.nanoTime() - responses.lastReleaseNs() < PUNCTUAL_NS;
        }, PUNCTUAL_LIMIT_MS);
        if (!punctual) {
            throw new IllegalStateException("the honest client is late by more than " + PUNCTUAL_NS / NS_PER_MS
                + " ms although no attack goes on");
        }
    }

    /** As long as the attack: so the machine has the same other load. */
    private void measureUndisturbed(final int lengthMs) throws InterruptedException {
        final long fromNs = System.nanoTime();
        TimeUnit.MILLISECONDS.sleep(lengthMs);
        responses.read();
        responses.undisturbed(fromNs, System.nanoTime());
    }

    private void measure(final Fault fault, final long fromNs, final long toNs) {
        responses.read();
        responses.attacked(fault, fromNs, toNs);
    }

    Responses responses() {
        return responses;
    }

    /** The pid that the responses are taken of. */
    void follow(final FaultClient innocent) {
        responses.follow(innocent.pid());
    }

    /**
     * Makes an attack and waits until it is over. In a sixth of the rounds the honest client is measured without one
     * before, in another sixth beside its control after it; and so it is where there is no such figure yet.
     *
     * @param round which, how long, by how many processes
     * @return why it could not be made here; empty if it was made
     * @throws IllegalStateException if the attacker's program is broken
     */
    String play(final Round round) throws IOException, InterruptedException {
        if (!refusal.isEmpty()) {
            return refusal;
        }
        final Fault fault = round.fault();
        final boolean hog = fault == Fault.FIFO_HOG;
        if (hog && !RealTime.isPermitted()) {
            return "SCHED_FIFO is not permitted";
        }
        if (fault.isProgram()) {
            awaitPunctual();
        }
        final int turn = round.variant() / ATTACKERS % TURNS;
        if (fault.isProgram() && (turn == 0 || !responses.hasUndisturbed())) {
            measureUndisturbed(attackMs(round));
        }
        final List<String> before = new ArrayList<>();
        if (hog) {
            final int cpu = round.variant() % Runtime.getRuntime().availableProcessors();
            before.addAll(List.of("taskset", "--cpu-list", Integer.toString(cpu)));
            before.addAll(fifo(HOG_PRIORITY));
        }
        final List<String> said = new ArrayList<>();
        final long beganNs = System.nanoTime();
        final String skipped = together(round, before, List.of(attack(fault).label()), said);
        if (!skipped.isEmpty() || !fault.isProgram()) {
            return skipped;
        }
        measure(fault, beganNs, System.nanoTime());
        // a hog does nothing but use a processor: there is no control that differs from it
        if (!hog && (turn == 1 || !responses.hasControl(fault))) {
            final long fromNs = System.nanoTime();
            together(round, List.of(), load(fault, said, attackMs(round)), new ArrayList<>());
            responses.read();
            responses.controlled(fault, fromNs, System.nanoTime());
        }
        return "";
    }

    /**
     * Starts a process of the hostile user that waits for a lock on every file of the daemon that it can open: the
     * process, which has opened them; null without another user.
     */
    Child waitForLocks(final Round round) throws IOException, InterruptedException, TimeoutException {
        if (!refusal.isEmpty()) {
            return null;
        }
        final List<String> command = new ArrayList<>(as(HOSTILE));
        command.addAll(List.of(program.toString(), "hold-locks", "--dir", rig.outside().toString(), "--duration",
            LOCKED_S + "s"));
        final Child process = Child.start("attacker", command, out.resolve("attacker-locks.err"));
        process.await("waits for", FaultRig.HANG_S);
        return process;
    }

    /** How long the attack lasts, if it has done enough by then: in one of eight rounds the whole drawn length. */
    private static int attackMs(final Round round) {
        return round.variant() / (ATTACKERS * TURNS) % WHOLE_LENGTHS == 0 ? round.lengthMs()
            : round.lengthMs() * SHARE_PERCENT / PERCENT;
    }

    /** The control of an attack: what one that never sleeps does, or as much processor time as it says it took. */
    private static List<String> load(final Fault fault, final List<String> said, final int lengthMs) {
        final boolean sleepless = fault == Fault.FLOOD_RECORDS;
        long processorMs = 0;
        for (final String line : said) {
            final Matcher found = PROCESSOR_TIME.matcher(line);
            processorMs += found.find() ? Long.parseLong(found.group(1)) : 0;
        }
        final long permille = processorMs * WHOLE / Math.max(1, (long) lengthMs * said.size());
        return List.of("load", "--threads", sleepless ? RECORD_THREADS : "1", "--share",
            Long.toString(sleepless ? WHOLE : Math.min(WHOLE, Math.max(1, permille))));
    }

    /** Runs as many processes of the hostile user as the round has attackers, until all have ended. */
    private String together(final Round round, final List<String> before, final List<String> what,
        final List<String> said) throws IOException, InterruptedException {
        final List<Child> processes = new ArrayList<>();
        String blunt = "";
        final int many = round.fault() == Fault.FIFO_HOG ? 1 : 1 + round.variant() % ATTACKERS;
        try {
            for (int i = 0; i < many; i++) {
                final List<String> command = new ArrayList<>(before);
                command.addAll(as(HOSTILE));
                command.add(program.toString());
                command.addAll(what);
                command.addAll(List.of("--dir", rig.outside().toString(), "--seed",
                    Integer.toString(round.variant() + i), "--duration", attackMs(round) + "ms", "--at-most",
                    Math.max(AT_MOST_MS, round.lengthMs()) + "ms"));
                processes.add(Child.start("attacker", command, out.resolve("attacker-" + ++started % 100 + ".err")));
            }
            for (final Child process : processes) {
                final int status = process.awaitExit(FaultRig.HANG_S);
                if (status == NOT_PERMITTED) {
                    return process.said().strip();
                }
                if (status == DID_NOT_BITE) {
                    blunt = "the attack did too little to count: " + process.lastLine();
                }
                if (status == USAGE || status == 1) {
                    throw new IllegalStateException("the attacker failed: " + process.said());
                }
                said.add(process.lastLine());
            }
        } catch (final TimeoutException e) {
            throw new IllegalStateException("the attacker did not end: " + e.getMessage(), e);
        } finally {
            processes.forEach(Child::close);
        }
        return blunt;
    }

    @Override
    public void close() {
        if (responses != null) {
            responses.close();
        }
    }
}
