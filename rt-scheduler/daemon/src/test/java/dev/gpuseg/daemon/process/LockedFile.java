/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A process that locks a file until it is killed: FILE 1 for writing, FILE 0 for reading. */
final class LockedFile {
    private LockedFile() {
    }

    /** Says "y" when it has the lock. */
    public static void main(final String[] args) throws IOException, InterruptedException {
        final boolean exclusive = "1".equals(args[1]);
        try (FileChannel file = FileChannel.open(Path.of(args[0]),
            exclusive ? StandardOpenOption.WRITE : StandardOpenOption.READ);
            FileLock lock = file.lock(0, Long.MAX_VALUE, !exclusive)) {
            System.out.print(lock.isValid() ? "y" : "n");
            System.out.flush();
            Thread.currentThread().join();
        }
    }
}
