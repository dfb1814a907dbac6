/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import java.util.List;
import java.util.Locale;

/**
 * Control groups of pods, as the kubelet names them:
 * <pre>
 * driver systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f_2e.slice/cri-containerd-X.scope
 * driver cgroupfs  /kubepods/burstable/pod1f-2e/X
 * </pre>
 * A daemon that has a control group namespace of its own sees them with other beginnings ({@code /../..}), so that
 * rules go by the last names.
 */
final class PodGroups {
    private static final String GUARANTEED = "guaranteed";
    private static final String UID = "[0-9A-Za-z-]{1,128}";

    private PodGroups() {
    }

    /**
     * Patterns of a pod's groups, for rules of the daemon.
     *
     * @param uid of the pod
     * @param qos its class of service, null while that is not known
     * @return for both drivers; empty if the uid is none
     */
    static List<String> of(final String uid, final String qos) {
        if (uid == null || !uid.matches(UID)) {
            return List.of();
        }
        final String name = qos == null ? "*" : qos.toLowerCase(Locale.ROOT).equals(GUARANTEED) ? ""
            : "-" + qos.toLowerCase(Locale.ROOT);
        return List.of("/**/kubepods" + name + "-pod" + uid.replace('-', '_') + ".slice/**", "/**/pod" + uid + "/**");
    }

    /** Patterns of all groups of pods of both drivers, for what no other rule names. */
    static List<String> all() {
        return List.of("/**kubepods**", "/**/pod????????-????-????-????-????????????/**");
    }
}
