/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.ipc.RuntimeDirectory;
import picocli.CommandLine.Option;

/** Where the daemon is. */
public final class DirectoryOption {
    @Option(names = "--dir", paramLabel = "DIR",
        description = "Runtime directory (default: $GPUSEG_DIR, else /run/gpuseg if it exists, else /dev/shm/gpuseg "
            + "for root, else $XDG_RUNTIME_DIR/gpuseg, else /dev/shm/gpuseg-UID).")
    private String directory;

    /**
     * The runtime directory that was asked for.
     *
     * @return that of the option, else of the environment, else the default
     */
    public RuntimeDirectory resolve() {
        return RuntimeDirectory.resolve(directory);
    }
}
