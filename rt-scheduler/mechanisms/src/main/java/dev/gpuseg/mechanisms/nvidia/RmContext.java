/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;
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
    static final int HELD_VERSION = Layouts.RM_HELD_VERSION;
    static final int HELD_HEADER_BYTES = Layouts.RmHeld.CHANNELS_OFFSET;
    static final int CHANNELS_MAX = Layouts.RM_CHANNELS_MAX;

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

    /**
     * Channels, with the client and the group of each. The arrays are kept and not changed.
     *
     * @param confirmed whether RM was asked for each; else they are what a process claims of its own clients
     */
    record Channels(int[] clients, int[] handles, int[] groups, boolean confirmed) {
        int count() {
            return handles.length;
        }
    }

    private final int gpu;
    private final ControlFile file;
    private final int client;
    private final int subdevice;
    private final Channels channels;
    private final List<Tsg> tsgs;
    private final byte[] heldPayload;

    RmContext(final int gpu, final ControlFile file, final int client, final int subdevice, final Channels channels,
        final List<Tsg> tsgs) {
        this.gpu = gpu;
        this.file = file;
        this.client = client;
        this.subdevice = subdevice;
        this.channels = channels;
        this.tsgs = List.copyOf(tsgs);
        heldPayload = payload();
    }

    /** That of a GPU among contexts by GPU, null if there is none. */
    static RmContext on(final int gpu, final RmContext[] contexts) {
        return gpu < contexts.length ? contexts[gpu] : null;
    }

    private byte[] payload() {
        final ByteBuffer b = ByteBuffer.allocate(HELD_HEADER_BYTES + Layouts.RmHeldChannel.SIZE * channels.count())
            .order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(Layouts.RmHeld.VERSION_OFFSET, HELD_VERSION).putInt(Layouts.RmHeld.FD_OFFSET, file.remoteFd())
            .putInt(Layouts.RmHeld.CLIENT_OFFSET, client).putInt(Layouts.RmHeld.SUBDEVICE_OFFSET, subdevice)
            .putInt(Layouts.RmHeld.COUNT_OFFSET, channels.count());
        for (int i = 0; i < channels.count(); i++) {
            final int at = HELD_HEADER_BYTES + i * Layouts.RmHeldChannel.SIZE;
            b.putInt(at + Layouts.RmHeldChannel.CLIENT_OFFSET, channelClient(i))
                .putInt(at + Layouts.RmHeldChannel.CHANNEL_OFFSET, channel(i));
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
        return channels.count();
    }

    int channelClient(final int i) {
        return channels.clients()[i];
    }

    int channel(final int i) {
        return channels.handles()[i];
    }

    /** Whether RM was asked for each channel. */
    boolean isConfirmed() {
        return channels.confirmed();
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
        for (int i = 0; i < channels.count(); i++) {
            count += isChosen(choice, i) == taken ? 1 : 0;
        }
        if (count == channels.count() || count == 0) {
            return count == 0 ? null : this;
        }
        final Channels some = new Channels(new int[count], new int[count], new int[count], channels.confirmed());
        for (int i = channels.count() - 1; count > 0; i--) {
            if (isChosen(choice, i) == taken) {
                count--;
                some.clients()[count] = channels.clients()[i];
                some.handles()[count] = channels.handles()[i];
                some.groups()[count] = channels.groups()[i];
            }
        }
        return new RmContext(gpu, file, client, subdevice, some, tsgs);
    }

    private boolean isChosen(final Choice choice, final int i) {
        return choice.takes(channelClient(i), channel(i), channels.groups()[i]);
    }

    /** Whether a channel is one of its own. */
    boolean contains(final int channelClient, final int channel) {
        for (int i = 0; i < channels.count(); i++) {
            if (channel(i) == channel && channelClient(i) == channelClient) {
                return true;
            }
        }
        return false;
    }

    /** Whether all channels of another one are its own, through the same open file. */
    boolean contains(final RmContext other) {
        boolean all = other.file == file;
        for (int i = 0; all && i < other.channels.count(); i++) {
            all = contains(other.channelClient(i), other.channel(i));
        }
        return all;
    }

    /** Whether it has the same channels and is reached in the same way. */
    boolean sameAs(final RmContext other) {
        return other != null && file == other.file && client == other.client && subdevice == other.subdevice
            && isConfirmed() == other.isConfirmed() && Arrays.equals(channels.clients(), other.channels.clients())
            && Arrays.equals(channels.handles(), other.channels.handles());
    }
}
