/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * One slot of the page by which an application with libgpuseg-preload.so is ordered to hold its own queues, that is,
 * to keep them disabled: {@code segment-api/preload/gpuseg_kfd_agent.h} has the layout and the rules. The C side is
 * rt-scheduler/native/amd.
 *
 * <p>The application owns the page and may write anything into it. So it is mapped only if it is a sealed memory file
 * of the right size (then no access faults) that names the process whose descriptor it is; no length is read from it;
 * and its answer affects only what is reported of that application.
 */
final class AgentPage {
    /** Slots, so GPUs. */
    static final int SLOTS = Layouts.KFD_AGENT_SLOTS;
    private static final String LINK = "/memfd:" + Layouts.KFD_AGENT_NAME;
    private static final int HOLD = Layouts.KFD_AGENT_HOLD;
    private static final int DOORBELL = Layouts.KfdAgent.DOORBELL_OFFSET;

    private final MappedByteBuffer mapping;   // keeps the memory
    private final UnsafeBuffer page;
    private final int slot;
    private int order;
    private int lapsesSeen;

    private AgentPage(final MappedByteBuffer mapping, final int slot) {
        this.mapping = mapping;
        this.slot = Layouts.KfdAgent.SLOTS_OFFSET + slot * Layouts.KfdAgentSlot.SIZE;
        page = new UnsafeBuffer(mapping);
        order = page.getIntVolatile(this.slot + Layouts.KfdAgentSlot.ORDER_OFFSET);
        lapsesSeen = page.getIntVolatile(this.slot + Layouts.KfdAgentSlot.LAPSES_OFFSET);
    }

    /** How many descriptors of a process a search examines, so that one with very many cannot keep the daemon busy. */
    static final int SEARCHED_MAX = 4096;
    /** Result of a search: none of {@link #SEARCHED_MAX} is a page, and there are more descriptors. */
    static final int TOO_MANY = -7;

    /** Result of a search: a page, or -errno (ENOENT: the process has no agent). */
    record Search(AgentPage page, int result) {
    }

    /** Searches the descriptors of a process. Opens none of them, because that could block. */
    static Search find(final AmdProcess p, final int slot) {
        return find(p, slot, SEARCHED_MAX);
    }

    static Search find(final AmdProcess p, final int slot, final int most) {
        final int pidfd = RemoteDescriptors.openProcess(p.pid(), p.startTicks());
        if (pidfd < 0) {
            return new Search(null, pidfd);
        }
        final Finder finder = new Finder(p.pid(), pidfd, slot, most);
        try {
            RemoteDescriptors.visit(p.pid(), AmdCalls.DRIVER, finder);
            return new Search(finder.page, finder.page == null ? finder.result : 0);
        } catch (final IOException e) {
            return new Search(null, ProcessHandle.of(p.pid()).isPresent() ? -Errno.EACCES : -Errno.ESRCH);
        } finally {
            SystemCalls.closeOnce(pidfd);
        }
    }

    /** Ends a visit at the first page. */
    private static final class Finder implements RemoteDescriptors.Visitor {
        private final int pid;
        private final int pidfd;
        private final int slot;
        private int left;
        private AgentPage page;
        private int result = -Errno.ENOENT;

        Finder(final int pid, final int pidfd, final int slot, final int most) {
            this.pid = pid;
            this.pidfd = pidfd;
            this.slot = slot;
            left = most;
        }

        @Override
        public boolean visit(final RemoteDescriptors.Link link) {
            if (left-- == 0) {
                result = TOO_MANY;
                return false;
            }
            if (link.startsWith(LINK)) {
                final int fd = DeviceFile.duplicateMemory(pid, pidfd, link.fd());
                if (fd >= 0) {
                    page = map(fd, pid, slot);
                } else if (fd != -Errno.EBADF && fd != DeviceFile.FOREIGN) {   // EBADF: closed meanwhile
                    result = fd;
                }
            }
            return page == null;
        }
    }

    /** Maps a descriptor of this process and closes it; null if it is not such a page. */
    private static AgentPage map(final int fd, final int pid, final int slot) {
        try {
            if (!AgentCalls.isSealed(fd)) {
                return null;
            }
            // opening a memory file again cannot block
            try (FileChannel channel = FileChannel.open(Descriptor.path(fd), StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
                if (channel.size() != Layouts.KFD_AGENT_BYTES) {
                    return null;
                }
                final MappedByteBuffer mapping = channel.map(FileChannel.MapMode.READ_WRITE, 0,
                    Layouts.KFD_AGENT_BYTES);
                final AgentPage found = new AgentPage(mapping, slot);
                return found.isOf(pid) ? found : null;
            }
        } catch (final IOException e) {
            return null;   // it cannot be mapped: the caller reports that there is no agent
        } finally {
            AmdCalls.close(fd);
        }
    }

    private boolean isOf(final int pid) {
        mapping.order(ByteOrder.nativeOrder());
        return page.getIntVolatile(Layouts.KfdAgent.VERSION_OFFSET) == Layouts.KFD_AGENT_VERSION
            && page.getInt(Layouts.KfdAgent.MAGIC_OFFSET) == Layouts.KFD_AGENT_MAGIC
            && page.getInt(Layouts.KfdAgent.PID_OFFSET) == pid;
    }

    /** Pid of the daemon that uses this slot, 0 = none. */
    int owner() {
        return page.getInt(slot + Layouts.KfdAgentSlot.OWNER_OFFSET);
    }

    long ownerTicks() {
        return page.getLong(slot + Layouts.KfdAgentSlot.OWNER_TICKS_OFFSET);
    }

    /** Claims the slot. */
    void own(final int pid, final long ticks, final int gpuId, final boolean computeOnly, final int periodMs) {
        page.putLong(slot + Layouts.KfdAgentSlot.OWNER_TICKS_OFFSET, ticks);
        page.putInt(slot + Layouts.KfdAgentSlot.GPU_ID_OFFSET, gpuId);
        page.putInt(slot + Layouts.KfdAgentSlot.FLAGS_OFFSET, computeOnly ? 0 : Layouts.KFD_AGENT_ALL_QUEUES);
        page.putInt(slot + Layouts.KfdAgentSlot.PERIOD_MS_OFFSET, periodMs);
        page.putIntOrdered(slot + Layouts.KfdAgentSlot.OWNER_OFFSET, pid);
    }

    /** Gives up the slot; the last order stays in force. */
    void disown() {
        page.putIntOrdered(slot + Layouts.KfdAgentSlot.OWNER_OFFSET, 0);
    }

    /** Writes a new order and wakes the agent. Does not wait for the answer. */
    void order(final boolean hold) {
        beat();
        lapsesSeen = page.getIntVolatile(slot + Layouts.KfdAgentSlot.LAPSES_OFFSET);
        order = replaceOrder(page, slot + Layouts.KfdAgentSlot.ORDER_OFFSET, hold);
        page.getAndAddInt(DOORBELL, 1);
        AgentCalls.wake(page.addressOffset() + DOORBELL);
    }

    /**
     * The watchdog orders, too, by the same rule (agent_page_order): no order of either is overwritten unseen, and no
     * two have the same number. Release; pairs with the acquire in read_orders.
     */
    static int replaceOrder(final AtomicBuffer page, final int at, final boolean hold) {
        int before;
        int order;
        do {
            before = page.getIntVolatile(at);
            order = (before | HOLD) + 1 | (hold ? HOLD : 0);
        } while (!page.compareAndSetInt(at, before, order));
        return order;
    }

    /** Whether the newest order is a hold. */
    boolean holds() {
        return (order & HOLD) != 0;
    }

    /** Whether the newest order was answered; {@link #result}, {@link #queue} and {@link #held} then belong to it. */
    boolean hasAnswered() {
        return page.getIntVolatile(slot + Layouts.KfdAgentSlot.ANSWERED_OFFSET) == order;
    }

    /** Waits for an answer, at most this long; may return early. */
    void await(final long ns, final ByteBuffer timeout) {
        final int answered = page.getIntVolatile(slot + Layouts.KfdAgentSlot.ANSWERED_OFFSET);
        if (answered != order) {
            AgentCalls.await(page.addressOffset() + slot + Layouts.KfdAgentSlot.ANSWERED_OFFSET, answered, ns,
                timeout);
        }
    }

    /** 0 or -errno of UPDATE_QUEUE. */
    int result() {
        return Math.min(0, page.getInt(slot + Layouts.KfdAgentSlot.RESULT_OFFSET));
    }

    /** The queue for which UPDATE_QUEUE failed. */
    int queue() {
        return page.getInt(slot + Layouts.KfdAgentSlot.QUEUE_OFFSET);
    }

    /** How many queues are disabled. */
    int held() {
        return page.getInt(slot + Layouts.KfdAgentSlot.HELD_OFFSET);
    }

    /** Tells the agent that this process is alive. */
    void beat() {
        page.putIntOrdered(slot + Layouts.KfdAgentSlot.BEAT_OFFSET, beats() + 1);
    }

    /** How many beats all daemons wrote; wraps. */
    int beats() {
        return page.getInt(slot + Layouts.KfdAgentSlot.BEAT_OFFSET);
    }

    /** Whether a hold ended without an order of the daemon: it lapsed, or the watchdog ordered it. True once. */
    boolean ended() {
        final boolean ended = holds() && (page.getIntVolatile(slot + Layouts.KfdAgentSlot.LAPSES_OFFSET) != lapsesSeen
            || page.getIntVolatile(slot + Layouts.KfdAgentSlot.ORDER_OFFSET) != order);
        if (ended) {
            order &= ~HOLD;
        }
        return ended;
    }

    /** Whether the agent's thread has SCHED_FIFO. */
    boolean realTime() {
        return (page.getInt(Layouts.KfdAgent.FLAGS_OFFSET) & Layouts.KFD_AGENT_REAL_TIME) != 0;
    }
}
