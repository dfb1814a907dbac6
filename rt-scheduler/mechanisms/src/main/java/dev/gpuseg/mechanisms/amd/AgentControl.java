/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.MechanismException;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * UPDATE_QUEUE, called by the applications themselves, each ordered through its {@link AgentPage}. All processes of one
 * call get their orders first, then their answers are awaited together. A process that does not answer within the bound
 * is reported; it still gets orders, but its answer is not awaited again until it has answered once. So it delays the
 * others one time only.
 *
 * <p>This works only for processes that run with libgpuseg-preload.so and that cooperate. {@link #heartbeat} keeps the
 * queues disabled; without it the agents enable them within the period.
 */
final class AgentControl implements QueueControl {
    /** Property: how long an application may take to answer, ms. */
    static final String ANSWER_PROPERTY = "gpuseg.amd.answer";
    static final int ANSWER_DEFAULT_MS = 200;
    private static final int PERIOD_MIN_MS = Layouts.KFD_AGENT_PERIOD_MIN_MS;
    private static final int PERIOD_MAX_MS = Layouts.KFD_AGENT_PERIOD_MAX_MS;
    private static final int BEATS_PER_PERIOD = 8;
    private static final long MS_IN_NS = 1_000_000;
    private static final long LOOK_NS = MS_IN_NS;
    private static final long SEARCH_AGAIN_NS = 250 * MS_IN_NS;

    /** The state of one application. */
    private static final class Agent {
        private AgentPage page;
        private int missing = -Errno.ENOENT;
        private long searchedNs;
        private List<AmdSysfs.Queue> searchedFor;
        private boolean lost;
    }

    private final int slot;
    private final int gpuId;
    private final boolean computeOnly;
    private final int periodMs;
    private final long answerNs = Integer.getInteger(ANSWER_PROPERTY, ANSWER_DEFAULT_MS) * MS_IN_NS;
    private final long sliceNs;
    private final int ownPid = ProcessStatus.pid();
    private final long ownTicks = ProcessStatus.startTicks(ownPid);
    private final Map<AmdProcess, Agent> agents = new LinkedHashMap<>();
    private final ByteBuffer timeout = AgentCalls.timeout();
    private final byte[] payload;
    private long beatNs;
    private long lookedNs = System.nanoTime() - LOOK_NS;

    /**
     * Uses the slot of this GPU.
     *
     * @throws MechanismException if the period is out of range
     */
    AgentControl(final int gpu, final int gpuId, final boolean computeOnly, final int periodMs) {
        if (periodMs < PERIOD_MIN_MS || periodMs > PERIOD_MAX_MS) {
            throw new MechanismException("watchdog of " + periodMs + " ms for applications' agents; use "
                + PERIOD_MIN_MS + " to " + PERIOD_MAX_MS);
        }
        slot = gpu;
        this.gpuId = gpuId;
        this.computeOnly = computeOnly;
        this.periodMs = periodMs;
        sliceNs = periodMs * MS_IN_NS / BEATS_PER_PERIOD;
        payload = HeldPayload.of(ControlInterface.AGENT, slot);
    }

    @Override
    public ControlInterface controlInterface() {
        return ControlInterface.AGENT;
    }

    @Override
    public boolean coversFutureQueues() {
        return false;   // the application makes the page with its first queue
    }

    @Override
    public void apply(final AmdProcess[] processes, final int count, final boolean disable) {
        long patienceNs = 0;
        for (int i = 0; i < count; i++) {
            final Agent agent = agentOf(processes[i]);
            if (agent.page == null) {
                missing(processes[i], agent, disable);
                continue;
            }
            if (agent.lost && agent.page.hasAnswered()) {
                agent.lost = false;
            }
            // an order is repeated, in case it failed before; but not while its answer is still outstanding
            if (!agent.lost || agent.page.holds() != disable) {
                agent.page.order(disable);
            }
            patienceNs = agent.lost ? patienceNs : answerNs;
        }
        final long limitNs = System.nanoTime() + patienceNs;
        for (int i = 0; i < count; i++) {
            final Agent agent = agentOf(processes[i]);
            if (agent.page != null) {
                while (!agent.page.hasAnswered() && !agent.lost && limitNs - System.nanoTime() > 0) {
                    agent.page.await(Math.min(sliceNs, Math.max(1, limitNs - System.nanoTime())), timeout);
                    beatAll();
                }
                settle(processes[i], agent, disable);
            }
        }
    }

    private Agent agentOf(final AmdProcess p) {
        final Agent agent = agents.computeIfAbsent(p, x -> new Agent());
        final long nowNs = System.nanoTime();
        // a list of queues is a new object if they have changed
        if (agent.page == null && (agent.searchedFor != p.queues() || nowNs - agent.searchedNs > SEARCH_AGAIN_NS)) {
            agent.searchedNs = nowNs;
            agent.searchedFor = p.queues();
            final AgentPage.Search found = AgentPage.find(p, slot);
            agent.missing = found.result();
            if (found.page() != null) {
                final int owner = found.page().owner();
                if (owner != 0 && owner != ownPid && ProcessStatus.isAlive(owner, found.page().ownerTicks())) {
                    agent.missing = -Errno.EBUSY;
                } else {
                    found.page().own(ownPid, ownTicks, gpuId, computeOnly, periodMs);
                    agent.page = found.page();
                }
            }
        }
        return agent;
    }

    private static void missing(final AmdProcess p, final Agent agent, final boolean disable) {
        final String why = switch (-agent.missing) {
            case Errno.ENOENT -> "it runs without libgpuseg-preload.so; start it with LD_PRELOAD set to that file";
            case Errno.EBUSY -> "another daemon controls it; stop that daemon";
            case -AgentPage.TOO_MANY -> "it has no agent among its first " + AgentPage.SEARCHED_MAX + " descriptors; "
                + "start it with LD_PRELOAD set to libgpuseg-preload.so, and have it close what it does not need";
            default -> Errno.name(-agent.missing) + " when looking for its agent; run the daemon with CAP_SYS_PTRACE";
        };
        p.result(disable ? agent.missing : 0, disable ? why : "");   // without an agent it was never disabled
    }

    private void settle(final AmdProcess p, final Agent agent, final boolean disable) {
        if (!agent.page.hasAnswered()) {
            agent.lost = true;
            p.result(-Errno.ETIMEDOUT, "its agent did not answer within " + answerNs / MS_IN_NS + " ms"
                + (agent.page.realTime() ? "" : "; its thread has no SCHED_FIFO, raise its RLIMIT_RTPRIO"));
        } else if (agent.page.result() == -Errno.EOPNOTSUPP) {
            p.result(-Errno.EOPNOTSUPP, "it has several KFD contexts, which cannot be told apart; use one");
        } else if (agent.page.result() != 0) {
            p.result(agent.page.result(), "UPDATE_QUEUE of queue " + agent.page.queue() + ": "
                + Errno.name(-agent.page.result()));
        } else if (disable && agent.page.held() < p.queues().size()) {
            p.result(-Errno.ENOENT, "its agent holds " + agent.page.held() + " of " + p.queues().size()
                + " queues; the others were created without libgpuseg-preload.so, or have just been destroyed");
        } else {
            p.result(0, "");
        }
    }

    private void beatAll() {
        beatNs = System.nanoTime();
        for (final Agent agent : agents.values()) {
            if (agent.page != null && agent.page.holds()) {
                agent.page.beat();
            }
        }
    }

    @Override
    public boolean heartbeat() {
        final long nowNs = System.nanoTime();
        if (nowNs - lookedNs < LOOK_NS) {
            return false;   // a polling enforcer calls this all the time
        }
        lookedNs = nowNs;
        if (nowNs - beatNs > sliceNs) {
            beatAll();
        }
        boolean ended = false;
        for (final Agent agent : agents.values()) {
            ended |= agent.page != null && agent.page.ended();
        }
        return ended;
    }

    @Override
    public byte[] heldPayload() {
        return payload;
    }

    @Override
    public void release(final AmdProcess process) {
        final Agent agent = agents.remove(process);
        if (agent != null && agent.page != null) {
            release(agent.page);   // without waiting for the answer
        }
    }

    private static void release(final AgentPage page) {
        if (page.holds()) {
            page.order(false);
        }
        page.disown();
    }

    @Override
    public void close() {
        agents.values().stream().filter(a -> a.page != null).forEach(a -> release(a.page));
        agents.clear();
    }
}
