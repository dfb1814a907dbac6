/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Whether the constants of a profile were measured on a machine like this one. Stateless. */
public final class ProfileMachine {
    private ProfileMachine() {
    }

    /**
     * What differs. What one of the two does not say is not compared.
     *
     * @param measured      what the profile says of its measurement; null = nothing
     * @param gpu           models of this machine's GPUs; empty = unknown
     * @param driverVersion of this machine; empty = unknown
     * @return one line with both values and the remedy, without a full stop; empty if nothing is known to differ
     */
    public static String difference(final JsonNode measured, final String gpu, final String driverVersion) {
        if (measured == null || !"nvidia".equals(measured.path("mechanism").asText())) {
            return "";
        }
        final List<String> all = new ArrayList<>();
        compare("GPU", measured.path("gpu").asText(), gpu, all);
        compare("driver", measured.path("driver_version").asText(), driverVersion, all);
        return all.isEmpty() ? "" : "the profile was measured on another machine: " + String.join(", ", all)
            + "; its constants say nothing of this one, measure it with gpuseg calibrate";
    }

    private static void compare(final String what, final String profile, final String machine,
        final List<String> all) {
        if (!profile.isEmpty() && !machine.isEmpty() && !profile.equals(machine)) {
            all.add(what + " " + profile + ", here " + machine);
        }
    }
}
