/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.nio.file.Path;

/**
 * A directory that is deleted with all below it when it is closed. In a try statement with resources, so that what went
 * wrong inside stays the failure that is reported, and one of the deletion is added to it.
 *
 * @param path the directory; it need not exist
 */
public record ScratchTree(Path path) implements AutoCloseable {
    @Override
    public void close() {
        RuntimeDirectory.deleteTree(path);
    }
}
