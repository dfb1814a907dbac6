/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** What is judged after each round: everybody goes on, nothing stays disabled, no acknowledged record is missing. */
final class Judgement {
    private static final long NS_PER_MS = 1_000_000;

    private final Stage stage;
    private final boolean hostile;
    private final Footprints footprints = new Footprints();

    /**
     * @param stage   of the rounds
     * @param hostile whether attackers hold the GPU, too
     */
    Judgement(final Stage stage, final boolean hostile) {
        this.stage = stage;
        this.hostile = hostile;
    }

    Footprints footprints() {
        return footprints;
    }

    /**
     * Waits until all go on and every freeze is over, settles the accounts and tells the stage of the longest freeze.
     *
     * @param on      the rig
     * @param clients those that must go on
     * @throws IllegalStateException if the daemon does not answer
     */
    void judge(final FaultRig on, final Map<String, FaultClient> clients) throws IOException,
        InterruptedException {
        stage.goOnAfterwards(new ArrayList<>(clients.values()));
        for (final FaultClient victim : stage.victims()) {
            victim.close();   // what it holds is released
        }
        settle(on);
        account(on);
        stage.froze(on.operations().longestNs(stage.struckNs(), stage.overNs(), System.nanoTime(),
            livingHolders(on, clients)));
        final JsonNode status = footprints.judge(on, clients.size(), Stage.HANG_MS, stage::problem);
        for (final String label : List.of("cycle_errors", "journal_drops")) {
            if (AdminClient.counter(status, label) > 0) {
                stage.problem(label + " is " + AdminClient.counter(status, label));
            }
        }
    }

    /** At some instant nothing is held and nothing disabled: then every freeze is over. */
    private void settle(final FaultRig on) throws IOException, InterruptedException {
        final long untilNs = System.nanoTime() + Stage.HANG_MS * NS_PER_MS;
        while (true) {
            on.operations().read();
            if (on.operations().disabled() == 0 && on.held() == 0) {
                break;
            }
            if (System.nanoTime() - untilNs > 0) {
                stage.hung(on.operations().disabled() + " contexts are disabled and " + on.held()
                    + " held, all the time");
                break;
            }
            TimeUnit.MICROSECONDS.sleep(Stage.FINE_DELAY_US);
        }
    }

    /** A holder is no excuse for a daemon that is gone: it cannot have the others enabled when the holder ends. */
    private List<Ledger.Window> livingHolders(final FaultRig on, final Map<String, FaultClient> clients) {
        return switch (stage.round().fault()) {
            case KILL_DAEMON, STOP_DAEMON, UPGRADE_DAEMON, KILL_BOTH, HOLD_LOCKS, OUT_OF_MEMORY -> List.of();
            // attackers, and the honest client, hold the GPU by right, each for the length of a budget at most
            default -> hostile ? on.ledger().windows()
                : on.ledger().windowsOf(clients.get("camera").pid());
        };
    }

    private void account(final FaultRig on) throws InterruptedException {
        final Ledger ledger = on.ledger();
        ledger.ask();
        Polling.until(() -> ledger.missing() == 0, Stage.HANG_MS);
        final StringBuilder who = new StringBuilder();
        final long missing = ledger.missing(who);
        if (missing > 0) {
            final long reported = reportedLosses(on);
            stage.lost(missing, missing + " acknowledged records are not in the journal:" + who + " the daemon reports "
                + reported + " lost events, " + ledger.gaps() + " sequence numbers are missing");
        }
        if (ledger.gaps() > 0 && missing == 0) {
            stage.lost(ledger.gaps(), ledger.gaps() + " sequence numbers are missing in the journal");
        }
        ledger.writeOff();
    }

    private static long reportedLosses(final FaultRig on) {
        final JsonNode status = on.status();
        return status.path("daemon").path("journal_lost").asLong() + AdminClient.counter(status, "journal_drops");
    }
}
