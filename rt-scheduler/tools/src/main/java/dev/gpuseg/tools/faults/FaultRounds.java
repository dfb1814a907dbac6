/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/**
 * Plays rounds of the fault campaign. Three clients stay over all of them and must go on whatever happens: two best
 * effort, one real time. Each round starts its victims, lets the fault strike, repairs what an operator or systemd
 * would repair (a dead daemon is started again), and judges.
 *
 * <pre>
 *   {@link Stage}          rig, clients and what is known of the round
 *   {@link Accidents}      what happens to a robot
 *   {@link HostileRounds}  what somebody does with intent, by {@link Attacks}
 *   {@link Judgement}      who must go on, which record must be where
 * </pre>
 */
public final class FaultRounds implements AutoCloseable {
    private static final String INNOCENT = "innocent";

    private final FaultRig rig;
    private final Stage stage;
    private final Attacks attacks;
    private final Accidents accidents;
    private final HostileRounds hostileRounds;
    private final Judgement judgement;

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
        rig = new FaultRig(Files.createDirectory(base.resolve("main")), out.resolve("journal"), out, "", periodMs);
        stage = new Stage(rig, base, out, periodMs);
        attacks = hostile ? new Attacks(rig, base, out) : null;
        judgement = new Judgement(stage, hostile);
        accidents = new Accidents(stage, judgement);
        hostileRounds = hostile ? new HostileRounds(stage, attacks) : null;
        final Map<String, FaultClient> residents = stage.residents();
        try {
            rig.startDaemon();
            for (final String name : List.of("background", "steady", "camera")) {
                residents.put(name, Stage.resident(rig, name));
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

    /** Plays a round and judges it. */
    public Tally.RoundResult play(final Round round) throws IOException, InterruptedException, TimeoutException {
        rig.operations().read();
        rig.operations().startAnew();
        rig.ledger().read();
        rig.ledger().startAnew();
        stage.begin(round);
        try {
            if (round.fault().isAccident()) {
                accidents.strike();
            } else {
                hostileRounds.strike();
            }
            if (!stage.isSkipped() && round.fault() != Fault.FULL_DISK) {
                judgement.judge(rig, stage.residents());
                replaceTheDead();
            }
        } catch (final IllegalStateException e) {
            stage.hung(e.getMessage());
            restoreDaemon();
        }
        for (final FaultClient victim : stage.victims()) {
            victim.close();
            rig.ledger().remove(victim.page());
        }
        return stage.outcome();
    }

    /** Clients that stay and that a fault has ended nevertheless: the next round finds them all. */
    private void replaceTheDead() throws IOException, InterruptedException {
        final Map<String, FaultClient> residents = stage.residents();
        for (final String name : List.copyOf(residents.keySet())) {
            if (residents.get(name).isAlive()) {
                continue;
            }
            residents.put(name, name.equals(INNOCENT) ? attacks.innocent() : Stage.resident(rig, name));
            if (name.equals(INNOCENT)) {
                attacks.follow(residents.get(name));
            }
        }
    }

    /** After a round that broke off: whatever state the daemon is in, the next round finds one. */
    private void restoreDaemon() throws IOException, InterruptedException, TimeoutException {
        if (rig.daemon().isAlive()) {
            rig.signalDaemon(FaultRig.CONT);
            try {
                rig.status();
                return;
            } catch (final IllegalStateException e) {
                stage.problem("the daemon is killed, for it does not answer: " + rig.daemon().said()
                    + "; its threads: " + rig.killHungDaemon());
            }
        }
        stage.daemonWent();
    }

    /** Puts {@code daemons_started} and what {@link Footprints#describe} says. After {@link #finish}. */
    public void describe(final ObjectNode to) {
        to.put("daemons_started", rig.daemonsStarted() + accidents.daemonsStarted());
        judgement.footprints().describe(to);
    }

    /**
     * How the honest client of a hostile campaign fared.
     *
     * @param to as {@link HostileRounds#describe}; {@link #describe} has been called
     * @return whether no daemon ended and the honest client kept its response times
     */
    public boolean describeAttacks(final ObjectNode to) {
        return hostileRounds.describe(to);
    }

    /** The end of the campaign: every client leaves in order. Returns what was not as it must be, one line each. */
    public List<String> finish() throws InterruptedException, TimeoutException {
        final List<String> problems = new ArrayList<>(accidents.finish());
        for (final FaultClient client : stage.residents().values()) {
            client.signal(FaultRig.TERM);
            client.process().awaitExit(FaultRig.HANG_S);
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
        accidents.close();
        rig.close();
    }
}
