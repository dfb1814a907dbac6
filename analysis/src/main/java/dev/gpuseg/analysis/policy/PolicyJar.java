/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.ZipFile;

/**
 * A jar file with policies. It must stay open while a policy of it is in use: classes are read when they are first
 * needed. What it contains runs with the rights of this process; open only files that nobody else can write.
 *
 * <p>Not thread-safe; the policies are.
 */
public final class PolicyJar implements AutoCloseable {
    private final URLClassLoader loader;
    private final PolicyCatalog catalog;
    private final List<PolicyDescription> offered;

    private PolicyJar(final URLClassLoader loader, final PolicyCatalog catalog,
        final List<PolicyDescription> offered) {
        this.loader = loader;
        this.catalog = catalog;
        this.offered = offered;
    }

    /**
     * Opens a jar and finds its policies.
     *
     * @param file  the jar
     * @param known the policies that exist already
     * @return the open jar
     * @throws IllegalArgumentException in one line: the file cannot be read or is no jar, it offers no policy, a class
     *     that it names is missing, is no policy or throws when it is made, or a name is taken
     */
    public static PolicyJar open(final Path file, final PolicyCatalog known) {
        requireJar(file);
        URLClassLoader loader = null;
        try {
            loader = new URLClassLoader("policy " + file.getFileName(), new URL[] {file.toUri().toURL()},
                PolicyCatalog.class.getClassLoader());
            final PolicyCatalog all = known.with(loader, file.toString());
            final List<PolicyDescription> offered = all.all().subList(known.all().size(), all.all().size());
            final PolicyJar jar = new PolicyJar(loader, all, List.copyOf(offered));
            loader = null;
            return jar;
        } catch (final IOException e) {
            throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
        } finally {
            close(loader);
        }
    }

    private static void requireJar(final Path file) {
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw new IllegalArgumentException(file + ": there is no such file, or it cannot be read");
        }
        try (ZipFile zip = new ZipFile(file.toFile())) {
            if (zip.size() == 0) {
                throw new IllegalArgumentException(file + ": the jar is empty");
            }
        } catch (final IOException e) {
            throw new IllegalArgumentException(file + ": it is no jar file (" + e.getMessage() + ")", e);
        }
    }

    private static void close(final URLClassLoader loader) {
        if (loader != null) {
            try {
                loader.close();
            } catch (final IOException e) {
                throw new IllegalStateException("policy jar: " + e.getMessage(), e);
            }
        }
    }

    /** The known policies and those of the jar. */
    public PolicyCatalog catalog() {
        return catalog;
    }

    /** The policies of the jar alone; at least one row. */
    public List<PolicyDescription> offered() {
        return offered;
    }

    /** Closes the file. Policies of it must not be used any more. */
    @Override
    public void close() {
        close(loader);
    }
}
