/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The directory by which clients find a daemon. {@link #resolve} says where a daemon of this user is started:
 * {@code $GPUSEG_DIR}, else {@code /run/gpuseg} where it exists (an installed daemon's; only root can make it), else
 * {@code /dev/shm/gpuseg} for root, else {@code $XDG_RUNTIME_DIR/gpuseg}, else {@code /dev/shm/gpuseg-UID}.
 * {@link #find} says where a client looks, by the same rule as the C library ({@code gpuseg_runtime_dir}): there, and
 * where an ordinary user has no daemon, at root's in {@code /dev/shm/gpuseg}.
 */
public final class RuntimeDirectory {
    private static final Path INSTALLED = Path.of(Abi.INSTALLED_DIR);
    private static final Path OF_ROOT = Path.of("/dev/shm/gpuseg");
    private static final int PATH_LIMIT = Abi.PATH_BYTES - 64;

    private final Path root;
    /** Somebody has said which; else it was found by the rule, under a name that another user may have taken. */
    private final boolean named;

    private RuntimeDirectory(final Path root, final boolean named) {
        this.root = root;
        this.named = named;
    }

    /**
     * Where a daemon of this user is. Creates nothing.
     *
     * @param override a path that comes before the rule, or null
     * @return the directory
     */
    public static RuntimeDirectory resolve(final String override) {
        return resolve(override, System.getenv(), ProcessStatus.effectiveUid(), INSTALLED);
    }

    /**
     * Where all daemons of this user look for what is one for the machine, whatever their own directories: where one is
     * by the rule without {@code $GPUSEG_DIR}, and where one of root is that was started before {@code /run/gpuseg} was
     * there. Creates the first if needed.
     *
     * @return directories that no other ordinary user has made, at least one
     * @throws IOException if the first cannot be used
     */
    public static List<Path> common() throws IOException {
        return common(System.getenv(), ProcessStatus.effectiveUid(), INSTALLED, OF_ROOT);
    }

    static List<Path> common(final Map<String, String> environment, final int uid, final Path installed,
        final Path ofRoot) throws IOException {
        final Map<String, String> unnamed = new HashMap<>(environment);
        unnamed.remove("GPUSEG_DIR");
        final Path first = resolve(null, unnamed, uid, installed).root;
        if (!first.equals(installed)) {
            if (!Files.exists(first, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(first, PosixFilePermissions.asFileAttribute(
                    PosixFilePermissions.fromString("rwxr-xr-x")));
            }
            if (!Files.isDirectory(first, LinkOption.NOFOLLOW_LINKS)
                || (Integer) Files.getAttribute(first, "unix:uid", LinkOption.NOFOLLOW_LINKS) != uid) {
                throw new IOException(first + " is not a directory of uid " + uid + "; remove it");
            }
        }
        return first.equals(ofRoot) || !belongsTo(ofRoot, 0) ? List.of(first) : List.of(first, ofRoot);
    }

    /**
     * Where a client of this user looks for its daemon. Creates nothing.
     *
     * @param override a path that comes before the rule, or null
     * @return the directory
     */
    public static RuntimeDirectory find(final String override) {
        return find(override, System.getenv(), ProcessStatus.effectiveUid(), INSTALLED, OF_ROOT);
    }

    static RuntimeDirectory find(final String override, final Map<String, String> environment, final int uid,
        final Path installed, final Path ofRoot) {
        final RuntimeDirectory own = resolve(override, environment, uid, installed);
        if (own.named || own.root.equals(installed)) {
            return own;
        }
        final boolean strange = Files.exists(own.root, LinkOption.NOFOLLOW_LINKS) && !belongsTo(own.root, uid)
            && !belongsTo(own.root, 0);
        final RuntimeDirectory roots = new RuntimeDirectory(ofRoot, false);
        if (uid != 0 && (strange || !Files.exists(own.socket())) && belongsTo(ofRoot, 0)
            && Files.exists(roots.socket())) {
            return roots;
        }
        if (strange) {
            throw new IllegalArgumentException("runtime directory " + own.root + " is none of root or uid " + uid
                + "; remove it, or name a directory with --dir or GPUSEG_DIR");
        }
        return own;
    }

    /**
     * Where a daemon is that a client of this user would find if {@code $GPUSEG_DIR} did not name this directory. The
     * variable often outlives the daemon for which it was set.
     *
     * @return null if the variable does not name this directory, or no daemon is there either
     */
    public RuntimeDirectory withoutVariable() {
        return withoutVariable(System.getenv(), ProcessStatus.effectiveUid(), INSTALLED, OF_ROOT);
    }

    RuntimeDirectory withoutVariable(final Map<String, String> environment, final int uid, final Path installed,
        final Path ofRoot) {
        final String variable = environment.getOrDefault("GPUSEG_DIR", "");
        if (variable.isEmpty() || !root.equals(Path.of(variable).toAbsolutePath().normalize())) {
            return null;
        }
        final Map<String, String> unset = new HashMap<>(environment);
        unset.remove("GPUSEG_DIR");
        final RuntimeDirectory other;
        try {
            other = find(null, unset, uid, installed, ofRoot);
        } catch (final IllegalArgumentException e) {
            return null; // a stranger's
        }
        return other.root.equals(root) || !Files.exists(other.socket()) ? null : other;
    }

    /** Whether this directory is root's. */
    public boolean isOfRoot() {
        return belongsTo(root, 0);
    }

    /** Every user can create names in /dev/shm: only what root owns there speaks for root. */
    private static boolean belongsTo(final Path directory, final int uid) {
        try {
            return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                && (Integer) Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS) == uid;
        } catch (final IOException e) {
            return false; // it vanished meanwhile, so no daemon is there
        }
    }

    /**
     * Whether a process that listens here may be the daemon: one of root, of this user, or of whom the installed
     * directory belongs to. In a directory that was named it may be of anybody.
     *
     * @param uid of the process, from the kernel
     * @return false for what a stranger has put here
     */
    public boolean mayServe(final int uid) {
        return named || uid == 0 || uid == ProcessStatus.effectiveUid() || root.equals(INSTALLED)
            && belongsTo(root, uid);
    }

    static RuntimeDirectory resolve(final String override, final Map<String, String> environment, final int uid,
        final Path installed) {
        final String path;
        final boolean named = override != null && !override.isEmpty()
            || !environment.getOrDefault("GPUSEG_DIR", "").isEmpty();
        if (override != null && !override.isEmpty()) {
            path = override;
        } else if (!environment.getOrDefault("GPUSEG_DIR", "").isEmpty()) {
            path = environment.get("GPUSEG_DIR");
        } else if (Files.isDirectory(installed)) {
            path = installed.toString();
        } else if (uid == 0) {
            path = OF_ROOT.toString();
        } else if (!environment.getOrDefault("XDG_RUNTIME_DIR", "").isEmpty()) {
            path = environment.get("XDG_RUNTIME_DIR") + "/gpuseg";
        } else {
            path = "/dev/shm/gpuseg-" + uid;
        }
        final Path root = Path.of(path).toAbsolutePath().normalize();
        final int bytes = root.toString().getBytes(StandardCharsets.UTF_8).length;
        if (bytes > PATH_LIMIT) {
            throw new IllegalArgumentException("runtime directory " + root + " has " + bytes + " bytes, at most "
                + PATH_LIMIT + " are allowed; choose a shorter GPUSEG_DIR");
        }
        return new RuntimeDirectory(root, named);
    }

    /**
     * Creates the directory (0755) if needed.
     *
     * @throws UncheckedIOException  if it cannot be created
     * @throws IllegalStateException if it belongs to another user or is not a directory: an attacker could have made it
     */
    public void create() {
        try {
            Files.createDirectories(root.getParent());
            if (!Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(root);
            }
            if (!Files.isDirectory(root, LinkOption.NOFOLLOW_LINKS)) {
                throw new IllegalStateException("runtime directory " + root + " is not a directory; remove it");
            }
            final int owner = (Integer) Files.getAttribute(root, "unix:uid", LinkOption.NOFOLLOW_LINKS);
            if (owner != ProcessStatus.effectiveUid()) {
                throw new IllegalStateException("runtime directory " + root + " belongs to uid " + owner
                    + ", not to uid " + ProcessStatus.effectiveUid() + "; remove it or choose another GPUSEG_DIR");
            }
            FileAccess.chmod(root, 0755);
            createClients();
        } catch (final IOException e) {
            throw new UncheckedIOException("runtime directory " + root + " cannot be created: " + e.getMessage()
                + "; choose another GPUSEG_DIR", e);
        }
    }

    /** Deletes clients, queues and socket of an earlier daemon. To be called only when no other daemon runs. */
    public void deleteLeftovers() {
        deleteTree(clients());
        deleteTree(template());
        deleteTree(socket());
        try {
            createClients();
        } catch (final IOException e) {
            throw new UncheckedIOException(clients() + " cannot be created: " + e.getMessage(), e);
        }
    }

    private void createClients() throws IOException {
        Files.createDirectories(clients());
        FileAccess.chmod(clients(), 0711);   // each client finds its own directory, and cannot list the others
    }

    /**
     * Deletes a file or a directory with all below it; symbolic links are removed, not followed. Files that vanish
     * meanwhile are no error.
     *
     * @param path what to delete
     */
    public static void deleteTree(final Path path) {
        try {
            if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                try (DirectoryStream<Path> entries = Files.newDirectoryStream(path)) {
                    for (final Path entry : entries) {
                        deleteTree(entry);
                    }
                }
            }
            Files.deleteIfExists(path);
        } catch (final NoSuchFileException e) {
            return; // it does not exist: nothing to do
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be deleted: " + e.getMessage(), e);
        }
    }

    /** The directory itself; absolute path. */
    public Path root() {
        return root;
    }

    /**
     * The file that a daemon keeps locked. No other user can open it: a lock for reading, which needs no more than
     * that, would keep the next daemon from starting.
     *
     * @return absolute path
     */
    public Path lock() {
        return root.resolve("daemon.lock");
    }

    /** The registration socket; absolute path. */
    public Path socket() {
        return root.resolve(Abi.SOCKET_NAME);
    }

    /** The status page; absolute path. */
    public Path status() {
        return root.resolve(Abi.STATUS_NAME);
    }

    /** The held file; absolute path. */
    public Path held() {
        return root.resolve(Abi.HELD_NAME);
    }

    /** The watchdog's page; absolute path. */
    public Path watchdog() {
        return root.resolve(Abi.WATCHDOG_NAME);
    }

    /** The virtual GPU's control socket; absolute path. */
    public Path simControl() {
        return root.resolve(Abi.SIM_CONTROL_NAME);
    }

    /** The journal's directory, unless an option says otherwise; absolute path. */
    public Path journal() {
        return root.resolve("journal");
    }

    /**
     * The policy settings that an administrator keeps for the next daemon.
     *
     * @param stateDirectories {@code $STATE_DIRECTORY} of a systemd service, null elsewhere: files there survive a
     *                         reboot
     * @return absolute path in the first state directory, else in this directory
     */
    public Path savedPolicy(final String stateDirectories) {
        final String first = stateDirectories == null ? "" : stateDirectories.split(":", 2)[0];
        return (first.startsWith("/") ? Path.of(first) : root).resolve("policy.json");
    }

    /** The admitted tasks, for a daemon that starts again; absolute path. */
    public Path admitted() {
        return root.resolve("admitted.json");
    }

    /** The directory of all clients' directories; absolute path. */
    public Path clients() {
        return root.resolve("clients");
    }

    /**
     * The directory of one client, owned by the client's user.
     *
     * @param clientId id of the client
     * @param pid      its process
     * @return absolute path
     */
    public Path client(final int clientId, final int pid) {
        return clients().resolve(clientId + "-" + pid);
    }

    /** The pristine queue from which clients' queues are copied; absolute path. */
    public Path template() {
        return root.resolve("template");
    }
}
