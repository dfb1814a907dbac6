/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.ipc.platform.PidFd;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * How many processes of a user may have a GPU context. Each makes every preemption longer, and takes an entry of the
 * held file while it is disabled; without an entry it cannot be disabled. So nothing but its end removes the cost of
 * one too many: those above limit {@code contexts} are ended, the newest first. Without such a limit nobody is, and a
 * user with {@value #MANY} processes is named once. Root and the daemon's user have no limit
 * ({@code rt-scheduler/docs/adr/0041-limits-at-run-time.md}). One thread.
 */
public final class ContextLimits {
    /** From this number on a user is named in the log. */
    static final int MANY = 64;

    private static final int NAME_SHOWN = 40;
    private static final int SIGKILL = 9;

    /** What is known of a process, and how one is ended. */
    interface Processes {
        /** The real user, -1 if it has ended. */
        int uid(ProcessView process);

        /** All its groups. */
        List<Integer> groups(ProcessView process);

        /**
         * Ends it.
         *
         * @throws SystemCallException if that is not allowed
         */
        void end(ProcessView process);
    }

    /** Those of this machine. */
    static final class Living implements Processes {
        @Override
        public int uid(final ProcessView process) {
            final int uid = ProcessStatus.uid(process.pid());
            return ProcessStatus.isAlive(process.pid(), process.startTicks()) ? uid : -1;   // it was that of this one
        }

        @Override
        public List<Integer> groups(final ProcessView process) {
            final List<Integer> groups = ProcessStatus.groups(process.pid());
            return ProcessStatus.isAlive(process.pid(), process.startTicks()) ? groups : List.of();
        }

        @Override
        public void end(final ProcessView process) {
            try (PidFd handle = PidFd.open(process.pid())) {
                if (ProcessStatus.isAlive(process.pid(), process.startTicks())) {   // the handle is of this one
                    handle.signal(SIGKILL);
                }
            }
        }
    }

    private final UserLimits limits;
    private final int ownUid;
    private final Processes processes;
    private final Consumer<String> log;
    /** Users who were named, and those of whom a process could not be ended. */
    private final Set<Integer> named = new HashSet<>();
    private long ended;

    /**
     * @param limits of users
     * @param ownUid the daemon's
     * @param log    receives one line for a user, or for a process that is ended
     */
    public ContextLimits(final UserLimits limits, final int ownUid, final Consumer<String> log) {
        this(limits, ownUid, log, new Living());
    }

    ContextLimits(final UserLimits limits, final int ownUid, final Consumer<String> log, final Processes processes) {
        this.limits = limits;
        this.ownUid = ownUid;
        this.log = log;
        this.processes = processes;
    }

    /**
     * Looks at the processes that have contexts, the oldest first; to be called whenever one has come. Returns how many
     * were ended so far.
     */
    public long look(final List<ProcessView> all) {
        final Map<Integer, List<ProcessView>> byUser = new HashMap<>();
        for (final ProcessView process : all) {
            final int uid = processes.uid(process);
            if (uid > 0 && uid != ownUid) {
                byUser.computeIfAbsent(uid, u -> new ArrayList<>()).add(process);
            }
        }
        named.retainAll(byUser.keySet());
        byUser.forEach(this::look);
        return ended;
    }

    private void look(final int uid, final List<ProcessView> ofUser) {
        int kept = 0;
        for (final ProcessView process : ofUser) {
            final UserLimits.Bound most = limits.of(Limit.CONTEXTS, uid, processes.groups(process));
            if (kept < most.value()) {
                kept++;
            } else {
                end(process, uid, ofUser.size(), most);
            }
        }
        if (kept >= MANY && named.add(uid)) {
            log.accept("user " + uid + " has " + kept + " processes with a GPU context, and each makes every "
                + "preemption longer; bound them with limit contexts in limits.d, or with pids.max of the user's "
                + "control group");
        }
    }

    private void end(final ProcessView process, final int uid, final int count, final UserLimits.Bound most) {
        final String what = "process " + process.pid() + " (" + PlainText.of(process.name(), NAME_SHOWN) + ") of user "
            + uid + ", who has " + count + " with a GPU context: " + most.describe(uid, count);
        try {
            processes.end(process);
            ended++;
            log.accept("ended " + what);
        } catch (final SystemCallException e) {
            if (processes.uid(process) >= 0 && named.add(uid)) {
                log.accept("cannot end " + what + ": " + e.getMessage() + "; run the daemon as root, or with CAP_KILL");
            }
        }
    }
}
