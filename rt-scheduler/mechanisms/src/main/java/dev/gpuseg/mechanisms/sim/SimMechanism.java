/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.sim;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.MechanismVerdict;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Level 3 on the virtual GPU ({@code gpuseg-vgpu}), through its control socket. For demonstrations and tests; its
 * results are always labelled simulated.
 *
 * <p>For a process that has not opened the virtual GPU yet the answer is {@code -ESRCH}. The virtual GPU remembers the
 * disable and applies it when the process opens it, so this counts as done.
 */
public final class SimMechanism implements Mechanism {
    /** Property of the daemon's JVM: {@code true} = best effort takes turns with short slices, as on a real GPU. */
    public static final String SLICES_PROPERTY = "gpuseg.sim.slices";
    private static final ByteOrder LE = ByteOrder.LITTLE_ENDIAN;
    private static final int TIMEOUT_MS = 500;
    private static final int NO_SUCH_PROCESS = -3;

    private static final int PERCENT = 100;
    private final Path control;
    /** Of {@link #busyPercent}'s thread, with a connection of its own. */
    private SimMechanism gauge;
    private long gaugedNs;
    private long busyBeforeNs;
    private final byte[] payload;
    private final Packet packet = new Packet(Abi.SimMsg.SIZE + Abi.SimInfo.SIZE);
    private final Capabilities capabilities;
    private SeqPacketSocket socket;
    private String lastError = "";

    /**
     * Connects to the virtual GPU and asks for its costs.
     *
     * @param control path of its control socket
     * @throws MechanismException if no virtual GPU answers there
     */
    public SimMechanism(final Path control) {
        this.control = control;
        payload = (control + "\0").getBytes(StandardCharsets.UTF_8);
        if (payload.length > Abi.HELD_PAYLOAD) {
            throw new MechanismException("virtual GPU " + control + ": the path has " + (payload.length - 1)
                + " bytes; use one of at most " + (Abi.HELD_PAYLOAD - 1));
        }
        final int status = request(Abi.SIM_INFO, null, 0, 0, 0);
        if (status != 0) {
            close();
            throw new MechanismException((lastError.isEmpty() ? "virtual GPU " + control + " answered " + status
                : lastError) + "; `gpuseg run --virtual-gpu` starts one, as gpuseg-vgpu --dir "
                + control.getParent() + " does");
        }
        final UnsafeBuffer data = packet.data();
        final int at = packet.length() - Abi.SimInfo.SIZE;
        if (at < 0 || data.getInt(at + Abi.SimInfo.MAGIC_OFFSET, LE) != Abi.SIM_MAGIC) {
            close();
            throw new MechanismException("virtual GPU " + control + ": its answer of " + packet.length()
                + " bytes is not understood; build the daemon and gpuseg-vgpu from the same sources");
        }
        capabilities = new Capabilities(Capabilities.INTERRUPT,
            data.getLong(at + Abi.SimInfo.DISABLE_COST_NS_OFFSET, LE), 0,
            data.getLong(at + Abi.SimInfo.ENABLE_COST_NS_OFFSET, LE), 0, Abi.SIM_BATCH_MAX, true, "process");
    }

    /**
     * Whether a virtual GPU answers.
     *
     * @param directory the daemon's runtime directory, where its control socket is
     * @return the verdict
     */
    public static MechanismVerdict survey(final RuntimeDirectory directory) {
        try (SimMechanism probe = new SimMechanism(directory.simControl())) {
            return new MechanismVerdict(true, probe.capabilities().level(), "a virtual GPU answers at "
                + directory.simControl() + "; its results are simulated");
        } catch (final MechanismException e) {
            return new MechanismVerdict(false, Capabilities.INTERRUPT, e.getMessage());
        }
    }

    @Override
    public String name() {
        return "sim";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_SIM;
    }

    @Override
    public Capabilities capabilities() {
        return capabilities;
    }

    @Override
    public void attach(final ContextRef context) {
        context.result(ContextRef.SwitchResult.NONE, 0, 0);
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        return batches(Abi.SIM_DISABLE, disable, disableCount) + batches(Abi.SIM_ENABLE, enable, enableCount);
    }

    private int batches(final int op, final ContextRef[] contexts, final int count) {
        int failed = 0;
        for (int from = 0; from < count; from += Abi.SIM_BATCH_MAX) {
            final int n = Math.min(Abi.SIM_BATCH_MAX, count - from);
            final long beganNs = System.nanoTime();
            final int status = request(op, contexts, from, n, 0);
            final boolean done = status == 0 || status == NO_SUCH_PROCESS;
            final long doneNs = done ? packet.data().getLong(Abi.SimMsg.TIME_NS_OFFSET, LE) : System.nanoTime();
            for (int i = from; i < from + n; i++) {
                contexts[i].result(done ? ContextRef.SwitchResult.DONE : ContextRef.SwitchResult.FAILED, beganNs,
                    doneNs);
            }
            failed += done ? 0 : n;
        }
        return failed;
    }

    /** On demand only: the rules of the virtual GPU bound a wait by the slice that runs and a switch. */
    @Override
    public boolean slicesBoundWaits() {
        return Boolean.getBoolean(SLICES_PROPERTY);
    }

    @Override
    public int busyPercent() {
        try {
            if (gauge == null) {
                gauge = new SimMechanism(control);
                gaugedNs = -1;
            }
        } catch (final MechanismException e) {
            return -1;   // the enforcer says that it does not answer
        }
        final long atNs = System.nanoTime();
        if (gauge.request(Abi.SIM_INFO, null, 0, 0, 0) != 0) {
            return -1;
        }
        final long busyNs = gauge.packet.data()
            .getLong(gauge.packet.length() - Abi.SimInfo.SIZE + Abi.SimInfo.BUSY_NS_OFFSET, LE);
        final int percent = gaugedNs < 0 || atNs == gaugedNs ? -1
            : (int) Math.min(PERCENT, PERCENT * (busyNs - busyBeforeNs) / (atNs - gaugedNs));
        gaugedNs = atNs;
        busyBeforeNs = busyNs;
        return percent;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        final int status = request(Abi.SIM_TIMESLICE, new ContextRef[] {context}, 0, 1, timesliceNs);
        return status == 0 || status == NO_SUCH_PROCESS;
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return payload;
    }

    @Override
    public void detach(final ContextRef context) {
        context.attachment(null);
    }

    @Override
    public String lastError() {
        return lastError;
    }

    /** Sends a request and returns the reply's status; Integer.MIN_VALUE = no reply. The packet holds the reply. */
    private int request(final int op, final ContextRef[] contexts, final int from, final int count,
        final long argNs) {
        try {
            if (socket == null) {
                socket = SeqPacketSocket.connect(control, TIMEOUT_MS);
            }
            final UnsafeBuffer out = packet.data();
            out.setMemory(0, Abi.SimMsg.SIZE, (byte) 0);
            out.putInt(Abi.SimMsg.MAGIC_OFFSET, Abi.SIM_MAGIC, LE);
            out.putInt(Abi.SimMsg.VERSION_OFFSET, Abi.ABI_VERSION, LE);
            out.putInt(Abi.SimMsg.OP_OFFSET, op, LE);
            out.putLong(Abi.SimMsg.ARG_NS_OFFSET, argNs, LE);
            out.putInt(Abi.SimMsg.COUNT_OFFSET, count, LE);
            for (int i = 0; i < count; i++) {
                out.putInt(Abi.SimMsg.PIDS_OFFSET + Integer.BYTES * i, contexts[from + i].pid(), LE);
            }
            packet.length(Abi.SimMsg.SIZE);
            packet.clearDescriptors();
            int n = socket.send(packet);
            if (n > 0) {
                n = socket.receive(packet);
            }
            if (n >= Abi.SimMsg.SIZE && packet.data().getInt(Abi.SimMsg.OP_OFFSET, LE) == op) {
                final int status = packet.data().getInt(Abi.SimMsg.STATUS_OFFSET, LE);
                lastError = status == 0 || status == NO_SUCH_PROCESS ? ""
                    : "virtual GPU " + control + " refused operation " + op + " with errno " + -status;
                return status;
            }
            lastError = n == SeqPacketSocket.NOTHING
                ? "virtual GPU " + control + " did not answer within " + TIMEOUT_MS + " ms"
                : "virtual GPU " + control + " closed the connection or sent an invalid answer";
        } catch (final SystemCallException e) {
            lastError = "virtual GPU " + control + ": " + Errno.name(e.errno());
        }
        disconnect();   // a late answer must not be taken for that of the next request
        return Integer.MIN_VALUE;
    }

    @Override
    public void close() {
        if (gauge != null) {
            gauge.close();
            gauge = null;
        }
        disconnect();
    }

    private void disconnect() {
        if (socket != null) {
            socket.close();
            socket = null;
        }
    }
}
