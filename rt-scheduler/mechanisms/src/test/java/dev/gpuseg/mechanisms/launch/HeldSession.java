/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.platform.Descriptor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A session, seen as its client sees it. */
final class HeldSession implements AutoCloseable {
    final Session session = Session.create(1, 1);
    private final MappedByteBuffer client;

    HeldSession() {
        try (FileChannel file = FileChannel.open(Path.of(Descriptor.path(session.fd()).toString()),
            StandardOpenOption.READ)) {
            client = file.map(FileChannel.MapMode.READ_ONLY, 0, Abi.SESSION_BYTES);
            client.order(ByteOrder.LITTLE_ENDIAN);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    LaunchHold word(final int gpu) {
        return LaunchHold.of(session, gpu);
    }

    boolean isHeld(final int gpu) {
        return client.getInt(Abi.Session.HOLD_OFFSET + gpu * Integer.BYTES) == Abi.HOLD_WAIT;
    }

    @Override
    public void close() {
        session.close();
    }
}
