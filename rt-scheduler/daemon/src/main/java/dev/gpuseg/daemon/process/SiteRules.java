/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.AdmissionSettings;
import dev.gpuseg.daemon.cgroup.LiveRules;
import dev.gpuseg.daemon.conductor.UserLimits;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.util.Objects;

/**
 * What the administrator of a machine decides about its users.
 *
 * @param admission      which tasks may be opened
 * @param unmanaged      what becomes of processes that never registered
 * @param protection     processes that a mechanism never touches
 * @param groups         weights, caps, protection and priorities by control group
 * @param clientsPerUser most clients of one uid, 1..128
 * @param tasksPerUser   most open tasks of one uid, 1..8192
 * @param limits         what users may ask for
 * @param observer       whether processes are seen by BPF
 * @param servedUser     uid who may use the daemon besides members of the group of its socket, -1 = none
 */
public record SiteRules(AdmissionSettings admission, Unmanaged unmanaged, Protection protection, LiveRules groups,
    int clientsPerUser, int tasksPerUser, UserLimits limits, ObserverMode observer,
    int servedUser) {
    /** Usual quota of clients. */
    public static final int CLIENTS_PER_USER = 64;
    /** Usual quota of tasks. */
    public static final int TASKS_PER_USER = 1024;
    /** No admission test, unregistered processes are best effort, display servers are protected, usual quotas. */
    public static final SiteRules DEFAULTS = new SiteRules(AdmissionSettings.OFF, Unmanaged.BEST_EFFORT,
        Protection.DEFAULTS, LiveRules.NONE, CLIENTS_PER_USER, TASKS_PER_USER,
        UserLimits.NONE, ObserverMode.OFF, -1);

    /** Nothing may be missing. */
    public SiteRules {
        Objects.requireNonNull(admission, "admission");
        Objects.requireNonNull(unmanaged, "unmanaged");
        Objects.requireNonNull(protection, "protection");
        Objects.requireNonNull(groups, "groups");
        Objects.requireNonNull(limits, "limits");
        Objects.requireNonNull(observer, "observer");
    }

    /**
     * The same with another admission.
     *
     * @param other settings
     * @return a copy
     */
    public SiteRules withAdmission(final AdmissionSettings other) {
        return new SiteRules(other, unmanaged, protection, groups, clientsPerUser, tasksPerUser, limits, observer,
            servedUser);
    }

    /**
     * The same with another use of the observer.
     *
     * @param other mode
     * @return a copy
     */
    public SiteRules withObserver(final ObserverMode other) {
        return new SiteRules(admission, unmanaged, protection, groups, clientsPerUser, tasksPerUser, limits, other,
            servedUser);
    }

    /**
     * The same, and one user may connect and has the limits of the group for real time, unless a line is about that
     * user.
     *
     * @param uid the user
     * @return a copy
     */
    public SiteRules serving(final int uid) {
        return new SiteRules(admission, unmanaged, protection, groups, clientsPerUser, tasksPerUser,
            limits.withRealTimeUser(uid), observer, uid);
    }
}
