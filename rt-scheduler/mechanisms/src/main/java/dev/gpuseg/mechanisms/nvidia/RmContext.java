/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.Abi;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/**
 * The work of one process on one GPU, as it was found at one moment: its channels, and the descriptor, client and
 * subdevice through which they are disabled and enabled. Immutable; the descriptor belongs to its {@link RmProcess}.
 */
final class RmContext {
    /** Version of the held payload; {@code struct gpuseg_rm_held} in rt-scheduler/native/rm/gpuseg_rm.h. */
    static final int HELD_VERSION = 1;
    static final int HELD_HEADER_BYTES = 32;
    static final int CHANNELS_MAX = (Abi.HELD_PAYLOAD - HELD_HEADER_BYTES) / (2 * Integer.BYTES);

    /** One channel group. */
    record Tsg(ControlFile file, int client, int handle, boolean compute) {
    }

    /** Chooses channels: by client and handle, and the handle of the group that each is in. */
    @FunctionalInterface
    interface Choice {
        Choice ALL = (client, handle, group) -> true;

        boolean takes(int client, int handle, int group);
    }

    /** What a process had scheduled: a channel group or a channel, and when that was done (CLOCK_MONOTONIC). */
    record Scheduled(int client, int handle, long timeNs) implements Choice {
        /** It may have been anything, at any time. */
        static final Scheduled ANY = new Scheduled(0, 0, Long.MAX_VALUE);

        @Override
        public boolean takes(final int channelClient, final int channel, final int group) {
            return this == ANY || channelClient == client && (channel == handle || group == handle);
        }
    }

    private final int gpu;
    private final ControlFile file;
    private final int client;
    private final int subdevice;
    private final int[] clients;
    private final int[] channels;
    private final int[] groups;
    private final List<Tsg> tsgs;
    private final byte[] heldPayload;

    /** The arrays, of channels with the client and the group of each, are kept. */
    RmContext(final int gpu, final ControlFile file, final int client, final int subdevice, final int[] clients,
        final int[] channels, final int[] groups, final List<Tsg> tsgs) {
        this.gpu = gpu;
        this.file = file;
        this.client = client;
        this.subdevice = subdevice;
        this.tsgs = List.copyOf(tsgs);
        this.clients = clients;
        this.channels = channels;
        this.groups = groups;
        heldPayload = payload();
    }

    /** That of a GPU among contexts by GPU, null if there is none. */
    static RmContext on(final int gpu, final RmContext[] contexts) {
        return gpu < contexts.length ? contexts[gpu] : null;
    }

    private byte[] payload() {
        final ByteBuffer b = ByteBuffer.allocate(HELD_HEADER_BYTES + 2 * Integer.BYTES * channels.length)
            .order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(HELD_VERSION).putInt(file.remoteFd()).putInt(client).putInt(subdevice).putInt(channels.length);
        b.position(HELD_HEADER_BYTES);
        for (int i = 0; i < channels.length; i++) {
            b.putInt(clients[i]).putInt(channels[i]);
        }
        return b.array();
    }

    int gpu() {
        return gpu;
    }

    ControlFile file() {
        return file;
    }

    int client() {
        return client;
    }

    int subdevice() {
        return subdevice;
    }

    int channelCount() {
        return channels.length;
    }

    int channelClient(final int i) {
        return clients[i];
    }

    int channel(final int i) {
        return channels[i];
    }

    List<Tsg> tsgs() {
        return tsgs;
    }

    /** What the watchdog needs to enable it again; not to be changed by the caller. */
    byte[] heldPayload() {
        return heldPayload;
    }

    /** The part of it that is scheduled with this, or the rest; null if there is no such channel. */
    RmContext part(final Scheduled what, final boolean rest) {
        return only(what, !rest);
    }

    /** Those of its channels that are chosen; itself if all are, null if none is. */
    RmContext only(final Choice choice) {
        return only(choice, true);
    }

    private RmContext only(final Choice choice, final boolean taken) {
        int count = 0;
        for (int i = 0; i < channels.length; i++) {
            count += choice.takes(clients[i], channels[i], groups[i]) == taken ? 1 : 0;
        }
        if (count == channels.length || count == 0) {
            return count == 0 ? null : this;
        }
        final int[] itsClients = new int[count];
        final int[] itsChannels = new int[count];
        final int[] itsGroups = new int[count];
        for (int i = channels.length - 1; count > 0; i--) {
            if (choice.takes(clients[i], channels[i], groups[i]) == taken) {
                count--;
                itsClients[count] = clients[i];
                itsChannels[count] = channels[i];
                itsGroups[count] = groups[i];
            }
        }
        return new RmContext(gpu, file, client, subdevice, itsClients, itsChannels, itsGroups, tsgs);
    }

    /** Whether a channel is one of its own. */
    boolean contains(final int channelClient, final int channel) {
        for (int i = 0; i < channels.length; i++) {
            if (channels[i] == channel && clients[i] == channelClient) {
                return true;
            }
        }
        return false;
    }

    /** Whether all channels of another one are its own, through the same open file. */
    boolean contains(final RmContext other) {
        boolean all = other.file == file;
        for (int i = 0; all && i < other.channels.length; i++) {
            all = contains(other.clients[i], other.channels[i]);
        }
        return all;
    }

    /** Whether it has the same channels and is reached in the same way. */
    boolean sameAs(final RmContext other) {
        return other != null && file == other.file && client == other.client && subdevice == other.subdevice
            && Arrays.equals(clients, other.clients) && Arrays.equals(channels, other.channels);
    }
}
