/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * UPDATE_QUEUE by the applications themselves, each told by its {@link AgentPage}. All of one call are told first and
 * waited for together. One that does not answer within the bound is left and reported; from then on it is told, but not
 * waited for, until it has answered: it delays the others once.
 *
 * <p>It holds only who runs with libgpuseg-preload.so and wants to be held. {@link #beat} keeps the holds in force;
 * without it the agents end them within the period.
 */
final class AgentLever implements Lever {
    /** Property: how long an application may take to answer, ms. */
    static final String ANSWER_PROPERTY = "gpuseg.amd.answer";
    static final int ANSWER_DEFAULT_MS = 200;
    static final int PERIOD_MIN_MS = 10;
    static final int PERIOD_MAX_MS = 60_000;
    private static final int HELD_BYTES = 24;
    private static final int BEATS_PER_PERIOD = 8;
    private static final long MS_IN_NS = 1_000_000;
    private static final long LOOK_NS = MS_IN_NS;
    private static final long SEARCH_AGAIN_NS = 250 * MS_IN_NS;

    /** What is known of one application. */
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

    /** By the slot of this GPU. */
    AgentLever(final int gpu, final int gpuId, final boolean computeOnly, final int periodMs) {
        slot = gpu;
        this.gpuId = gpuId;
        this.computeOnly = computeOnly;
        this.periodMs = periodMs;
        sliceNs = periodMs * MS_IN_NS / BEATS_PER_PERIOD;
        payload = ByteBuffer.allocate(HELD_BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(Held.VERSION)
            .putInt(Rung.AGENT.number()).putInt(ownPid).putInt(slot).putLong(ownTicks).array();
    }

    @Override
    public Rung rung() {
        return Rung.AGENT;
    }

    @Override
    public boolean holdsInAdvance() {
        return false;   // the page is made with the first queue
    }

    @Override
    public void switchAll(final AmdProcess[] processes, final int count, final boolean off) {
        long patienceNs = 0;
        for (int i = 0; i < count; i++) {
            final Agent agent = agentOf(processes[i]);
            if (agent.page == null) {
                missing(processes[i], agent, off);
                continue;
            }
            if (agent.lost && agent.page.hasAnswered()) {
                agent.lost = false;
            }
            // the same order again is given again, for what failed; but not to one that still owes us an answer to it
            if (!agent.lost || agent.page.holds() != off) {
                agent.page.order(off);
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
                settle(processes[i], agent, off);
            }
        }
    }

    private Agent agentOf(final AmdProcess p) {
        final Agent agent = agents.computeIfAbsent(p, x -> new Agent());
        final long nowNs = System.nanoTime();
        // the list is made anew when its queues change
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

    private static void missing(final AmdProcess p, final Agent agent, final boolean off) {
        final String why = switch (-agent.missing) {
            case Errno.ENOENT -> "it runs without libgpuseg-preload.so; start it with LD_PRELOAD set to that file";
            case Errno.EBUSY -> "another daemon gives orders to it; stop that one";
            case -AgentPage.TOO_MANY -> "it has no agent among its first " + AgentPage.SEARCHED_MAX + " descriptors; "
                + "start it with LD_PRELOAD set to libgpuseg-preload.so, and have it close what it does not need";
            default -> Errno.name(-agent.missing) + " when looking for its agent; run the daemon with CAP_SYS_PTRACE";
        };
        p.result(off ? agent.missing : 0, off ? why : "");   // what never was held is not held
    }

    private void settle(final AmdProcess p, final Agent agent, final boolean off) {
        if (!agent.page.hasAnswered()) {
            agent.lost = true;
            p.result(-Errno.ETIMEDOUT, "its agent did not answer within " + answerNs / MS_IN_NS + " ms"
                + (agent.page.realTime() ? "" : "; its thread has no SCHED_FIFO, raise its RLIMIT_RTPRIO"));
        } else if (agent.page.result() == -Errno.EOPNOTSUPP) {
            p.result(-Errno.EOPNOTSUPP, "it has several KFD contexts, which cannot be told apart; use one");
        } else if (agent.page.result() != 0) {
            p.result(agent.page.result(), "UPDATE_QUEUE of queue " + agent.page.queue() + ": "
                + Errno.name(-agent.page.result()));
        } else if (off && agent.page.held() < p.queues().size()) {
            p.result(-Errno.ENOENT, "its agent holds " + agent.page.held() + " of " + p.queues().size()
                + " queues; the others were made past libgpuseg-preload.so, or are just gone");
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
    public boolean beat() {
        final long nowNs = System.nanoTime();
        if (nowNs - lookedNs < LOOK_NS) {
            return false;   // an enforcer that polls asks without end
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
    public void forget(final AmdProcess process) {
        final Agent agent = agents.remove(process);
        if (agent != null && agent.page != null) {
            release(agent.page);   // it will be followed; nobody has to wait for that
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
