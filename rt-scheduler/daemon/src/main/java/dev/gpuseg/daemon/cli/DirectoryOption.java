/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import dev.gpuseg.daemon.ipc.RuntimeDirectory;
import picocli.CommandLine.Option;

/** Where the daemon is. */
final class DirectoryOption {
    @Option(names = "--dir", paramLabel = "DIR",
        description = "runtime directory (default: $GPUSEG_DIR, else /run/gpuseg where it exists, else "
            + "/dev/shm/gpuseg for root, else $XDG_RUNTIME_DIR/gpuseg, else /dev/shm/gpuseg-UID)")
    private String directory;

    RuntimeDirectory resolve() {
        return RuntimeDirectory.resolve(directory);
    }
}
