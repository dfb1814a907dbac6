/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.BoundedFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** The capabilities (capabilities(7)) that mechanisms need. */
public enum Privilege {
    /** To duplicate descriptors of other users' processes. */
    SYS_PTRACE(19),
    /** To open {@code /dev/gpuseg-kfd}. */
    SYS_ADMIN(21);

    private static final Path OWN_STATUS = Path.of("/proc/self/status");
    private static final String EFFECTIVE = "CapEff:";
    private static final int HEX = 16;

    private final int bit;

    Privilege(final int bit) {
        this.bit = bit;
    }

    /** Whether this process has it now, in its effective set; false also if /proc cannot be read. */
    public boolean held() {
        try {
            return held(BoundedFile.text(OWN_STATUS, StandardCharsets.ISO_8859_1));
        } catch (final IOException e) {
            return false;   // without /proc nothing that needs a capability works
        }
    }

    boolean held(final String status) {
        return status.lines().filter(line -> line.startsWith(EFFECTIVE))
            .map(line -> line.substring(EFFECTIVE.length()).strip())
            .anyMatch(set -> (Long.parseUnsignedLong(set, HEX) >>> bit & 1) == 1);
    }
}
