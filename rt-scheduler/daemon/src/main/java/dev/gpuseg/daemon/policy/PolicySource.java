/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.policy;

import dev.gpuseg.analysis.conformance.ConformanceReport;
import dev.gpuseg.analysis.conformance.Effort;
import dev.gpuseg.analysis.conformance.PolicyConformance;
import dev.gpuseg.analysis.conformance.PropertyResult;
import dev.gpuseg.analysis.policy.PolicyJar;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where policies come from: the catalogue of the program, and perhaps a jar. What comes from a jar must pass the
 * conformance kit before it may decide. It must stay open while a policy of it is in use.
 *
 * <p>Thread-safe.
 */
public final class PolicySource implements AutoCloseable {
    private static final int OTHERS_WRITE = 0022;
    private static final int STICKY = 01000;

    private final PolicyJar jar;
    private final PolicyReader reader;
    private final String file;
    /** Policies without parameters that conform, by name. */
    private final Set<String> conforming = ConcurrentHashMap.newKeySet();

    private PolicySource(final PolicyJar jar, final String file) {
        this.jar = jar;
        this.file = file;
        reader = new PolicyReader(catalog());
    }

    /**
     * The policies of the program alone.
     *
     * @return a source that needs no closing
     */
    public static PolicySource builtIn() {
        return new PolicySource(null, "");
    }

    /**
     * The policies of the program and of a jar.
     *
     * @param file the jar; what it contains runs with the rights of this process
     * @return the open source; null for a jar means {@link #builtIn}
     * @throws IllegalArgumentException in one line: the jar cannot be read, offers no policy, or one that clashes
     */
    public static PolicySource open(final Path file) {
        if (file == null) {
            return builtIn();
        }
        final PolicyJar jar = PolicyJar.open(file, PolicyCatalog.builtIn());
        try {
            return new PolicySource(jar, file.toString());
        } catch (final IllegalArgumentException e) {
            jar.close();
            throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
        }
    }

    /**
     * As {@link #open}, for a process that obeys a file of its administrator: it takes no jar that a user other than
     * root and its own could write or replace.
     *
     * @param file the jar
     * @return the open source
     * @throws IllegalArgumentException as {@link #open}, and if somebody else could have written the jar
     */
    public static PolicySource openOwned(final Path file) {
        return openOwned(file, ProcessStatus.effectiveUid());
    }

    static PolicySource openOwned(final Path file, final int uid) {
        if (file == null) {
            return builtIn();
        }
        try {
            final Path real = file.toRealPath();   // nobody can move a link after it has been looked at
            final String distrusted = distrust(real, uid);
            if (distrusted != null) {
                throw new IllegalArgumentException(file + ": " + distrusted);
            }
            return open(real);
        } catch (final IOException e) {
            throw new IllegalArgumentException(file + ": there is no such file, or it cannot be read", e);
        }
    }

    /**
     * Why a user should not run the code of a file.
     *
     * @param file without links
     * @param uid  the user
     * @return one line; null if nobody but root and the user can write it or replace it
     * @throws IOException if owner and mode cannot be read
     */
    static String distrust(final Path file, final int uid) throws IOException {
        for (Path p = file.toAbsolutePath(); p != null; p = p.getParent()) {
            final int owner = (Integer) Files.getAttribute(p, "unix:uid");
            final int mode = (Integer) Files.getAttribute(p, "unix:mode");
            if (owner != 0 && owner != uid) {
                return p + " belongs to user " + Integer.toUnsignedLong(owner) + ", and its code would run as user "
                    + uid + "; it must belong to root or to that user";
            }
            // in a sticky directory, such as /tmp, only the owner of a file can replace it
            if ((mode & OTHERS_WRITE) != 0 && (!Files.isDirectory(p) || (mode & STICKY) == 0)) {
                return p + " can be written by other users (mode " + Integer.toOctalString(mode & 07777)
                    + "), and its code would run as user " + uid + "; chmod go-w " + p;
            }
        }
        return null;
    }

    /**
     * All policies.
     *
     * @return those of the program, then those of the jar
     */
    public PolicyCatalog catalog() {
        return jar == null ? PolicyCatalog.builtIn() : jar.catalog();
    }

    /**
     * The policies of the jar alone.
     *
     * @return empty if there is no jar
     */
    public List<PolicyDescription> offered() {
        return jar == null ? List.of() : jar.offered();
    }

    /**
     * Reads what files and requests say of these policies.
     *
     * @return the reader
     */
    public PolicyReader reader() {
        return reader;
    }

    /**
     * The policy where nobody names one: the only one of the jar, else that of the program.
     *
     * @return the policy with its defaults
     * @throws IllegalArgumentException if the jar offers several, or one that needs parameters
     */
    public Policy standard() {
        if (offered().isEmpty()) {
            return catalog().standard();
        }
        if (offered().size() > 1 || !offered().get(0).hasDefaults()) {
            throw new IllegalArgumentException(file + " offers "
                + String.join(", ", offered().stream().map(PolicyDescription::name).toList())
                + "; name one with --policy, or in a policy file with its parameters");
        }
        return catalog().create(offered().get(0).name());
    }

    /**
     * Whether a policy may decide without another look at it.
     *
     * @param policy with its parameters
     * @return true if it comes from the program, or was found to conform
     */
    public boolean isAccepted(final Policy policy) {
        return isAcceptedAlone(policy) && isAcceptedAlone(policy.ordering());
    }

    private boolean isAcceptedAlone(final Policy policy) {
        return PolicyCatalog.builtIn().find(policy.name()).isPresent() || conforming.contains(policy.name());
    }

    /**
     * Checks a policy, unless {@link #isAccepted}. Takes up to some seconds.
     *
     * @param policy with its parameters
     * @return null if it may decide; else one line with the law that it breaks, and a counterexample
     */
    public String refusal(final Policy policy) {
        for (final Policy one : List.of(policy, policy.ordering())) {
            final String refused = isAcceptedAlone(one) ? null : check(one);
            if (refused != null) {
                return refused;
            }
        }
        return null;
    }

    /**
     * Checks all policies of the jar that need no parameter: what a daemon may be told to use at any time.
     *
     * @return null if all may decide; else one line
     */
    public String refusal() {
        for (final PolicyDescription row : offered()) {
            final String refused = row.hasDefaults() ? refusal(catalog().create(row.name())) : null;
            if (refused != null) {
                return refused;
            }
        }
        return null;
    }

    private String check(final Policy policy) {
        final ConformanceReport report;
        try {
            report = PolicyConformance.verify(policy, Effort.FAST);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            return "policy " + policy.name() + " of " + file + " is not checked: interrupted";
        }
        if (report.passed()) {
            if (catalog().find(policy.name()).filter(row -> row.parameters().isEmpty()).isPresent()) {
                conforming.add(policy.name());
            }
            return null;
        }
        final List<PropertyResult> broken = report.failures();
        return "policy " + policy.name() + " of " + file + " breaks the law " + broken.get(0).name() + " ("
            + broken.get(0).statement() + "): " + broken.get(0).counterexample().replaceAll("\\s*\\R\\s*", " ")
            + (broken.size() == 1 ? "" : "; and " + (broken.size() - 1) + " more")
            + "; `gpuseg policy verify " + file + "` says more";
    }

    /** Closes the jar. */
    @Override
    public void close() {
        if (jar != null) {
            jar.close();
        }
    }
}
