/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharedPagesTest {
    private static final int STRANGER = 65_531;

    @TempDir
    private Path directory;

    @Test
    void shouldResolveTheDirectoryAsTheCLibraryDoes() {
        assertEquals("/a/b", resolve("/a/b", Map.of("GPUSEG_DIR", "/c"), 0).root().toString());
        assertEquals("/c", resolve(null, Map.of("GPUSEG_DIR", "/c"), 0).root().toString());
        assertEquals("/dev/shm/gpuseg", resolve(null, Map.of(), 0).root().toString());
        assertEquals("/dev/shm/gpuseg",
            resolve(null, Map.of("XDG_RUNTIME_DIR", "/run/u"), 0).root().toString());
        assertEquals("/run/u/gpuseg",
            resolve(null, Map.of("XDG_RUNTIME_DIR", "/run/u"), 7).root().toString());
        assertEquals("/dev/shm/gpuseg-7", resolve("", Map.of("GPUSEG_DIR", ""), 7).root().toString());
        assertThrows(IllegalArgumentException.class,
            () -> resolve("/" + "x".repeat(300), Map.of(), 0));
        assertEquals(directory.toString(), RuntimeDirectory.resolve(null, Map.of("XDG_RUNTIME_DIR", "/run/u"), 7,
            directory).root().toString(), "an installed daemon's directory comes before the user's");
        assertEquals("/c", RuntimeDirectory.resolve(null, Map.of("GPUSEG_DIR", "/c"), 7, directory).root().toString());
    }

    @Test
    void shouldFindTheDaemonOfRootWhereTheUserHasNone() throws IOException {
        final Path own = Files.createDirectories(directory.resolve("own/gpuseg"));
        final Path roots = Files.createDirectory(directory.resolve("roots"));
        final int uid = ProcessStatus.effectiveUid() == 0 ? 7 : ProcessStatus.effectiveUid();
        final Map<String, String> user = Map.of("XDG_RUNTIME_DIR", own.getParent().toString());
        assertEquals(own, find(null, user, uid, roots), "nobody has a daemon: the own directory is named");
        Files.createFile(roots.resolve(Abi.SOCKET_NAME));
        final boolean root = (Integer) Files.getAttribute(roots, "unix:uid") == 0;
        assertEquals(root ? roots : own, find(null, user, uid, roots), "only a directory of root speaks for root");
        assertEquals(directory.resolve("x"), find(null, Map.of("GPUSEG_DIR", directory.resolve("x").toString()), uid,
            roots));
        assertEquals(directory.resolve("y"), find(directory.resolve("y").toString(), user, uid, roots));
        assertEquals(Path.of("/dev/shm/gpuseg"), find(null, user, 0, roots));
        Files.createFile(own.resolve(Abi.SOCKET_NAME));
        assertEquals(own, find(null, user, uid, roots), "a daemon of the user's own comes first");
        Files.delete(own.resolve(Abi.SOCKET_NAME));
        Files.createSymbolicLink(directory.resolve("link"), roots);
        assertEquals(own, find(null, user, uid, directory.resolve("link")), "anybody can make a link");
    }

    @Test
    void shouldNameTheDirectoriesInWhichAllDaemonsOfAUserMeet() throws IOException {
        final Path none = directory.resolve("none");
        final Path roots = Files.createDirectory(directory.resolve("roots"));
        final int uid = ProcessStatus.effectiveUid();
        final Map<String, String> user = Map.of("GPUSEG_DIR", "/c", "XDG_RUNTIME_DIR", directory.toString());
        assertEquals(List.of(directory), RuntimeDirectory.common(user, uid, directory, none), "an installed daemon's");
        assertEquals(uid == 0 ? List.of(directory, roots) : List.of(directory),
            RuntimeDirectory.common(user, uid, directory, roots), "a daemon of root that is older meets it, too");
        final Path own = directory.resolve("gpuseg");
        if (uid != 0) {   // root's is not below XDG_RUNTIME_DIR
            assertEquals(List.of(own), RuntimeDirectory.common(user, uid, none, none), "made");
            assertEquals(List.of(own), RuntimeDirectory.common(user, uid, none, none), "found");
            Files.delete(own);
        }
        Files.createSymbolicLink(own, roots);
        assertThrows(IOException.class, () -> RuntimeDirectory.common(user, 7, none, none), "a link");
        Files.delete(own);
        Files.createDirectory(own);
        final String refused = assertThrows(IOException.class,
            () -> RuntimeDirectory.common(user, 7, none, none)).getMessage();
        assertTrue(refused.contains("not a directory of uid 7"), refused);
    }

    /** In /dev/shm anybody can make the directory of another user, or root's, before he does. */
    @Test
    void shouldNotFindADaemonInADirectoryThatAStrangerHasMade() throws IOException {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "giving a directory to another user needs root");
        final Path xdg = Files.createDirectories(directory.resolve("xdg"));
        final Map<String, String> user = Map.of("XDG_RUNTIME_DIR", xdg.toString());
        final Path own = Files.createDirectories(xdg.resolve("gpuseg"));
        final Path roots = Files.createDirectories(directory.resolve("roots"));
        Files.createFile(own.resolve("gpuseg.sock"));
        FileAccess.chown(own, STRANGER, STRANGER);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> find(null, user, 7, roots)).getMessage()
            .contains(own + " is none of root or uid 7"));
        Files.createFile(roots.resolve("gpuseg.sock"));
        assertEquals(roots, find(null, user, 7, roots), "it does not hide that of root");
        FileAccess.chown(own, 7, 7);
        assertEquals(own, find(null, user, 7, roots));
    }

    @Test
    void shouldBelieveAStrangersSocketOnlyWhereTheDirectoryWasNamed() {
        final int uid = ProcessStatus.effectiveUid();
        final RuntimeDirectory found = RuntimeDirectory.find(null, Map.of("XDG_RUNTIME_DIR", directory.toString()), uid,
            directory.resolve("none"), directory.resolve("roots"));
        assertTrue(found.mayServe(0) && found.mayServe(uid));
        assertFalse(found.mayServe(STRANGER));
        assertTrue(RuntimeDirectory.resolve(directory.toString()).mayServe(STRANGER));
    }

    @Test
    void shouldTellAVariableThatIsLeftOverFromADaemonThatDoesNotRun() throws IOException {
        final int uid = ProcessStatus.effectiveUid();
        final Path left = directory.resolve("left");
        final Path roots = directory.resolve("roots");
        final Path own = Files.createDirectories(directory.resolve("gpuseg"));
        final Map<String, String> user = Map.of("XDG_RUNTIME_DIR", directory.toString(), "GPUSEG_DIR",
            directory + "/./left");
        final RuntimeDirectory named = RuntimeDirectory.resolve(left.toString());
        final Path none = directory.resolve("none");
        final int other = uid == 0 ? 7 : uid;
        FileAccess.chown(own, uid == 0 ? other : -1, -1);
        assertNull(named.withoutVariable(user, other, none, roots), "no daemon is there either");
        Files.createFile(own.resolve("gpuseg.sock"));
        assertEquals(own, named.withoutVariable(user, other, none, roots).root());
        assertNull(named.withoutVariable(Map.of("XDG_RUNTIME_DIR", directory.toString()), other, none, roots));
        assertNull(RuntimeDirectory.resolve(own.toString()).withoutVariable(user, other, none, roots), "--dir said so");
        assertNull(RuntimeDirectory.resolve(own.toString()).withoutVariable(Map.of("XDG_RUNTIME_DIR",
            directory.toString(), "GPUSEG_DIR", own.toString()), other, none, roots), "it would be found there, too");
        if (uid == 0) {
            FileAccess.chown(own, STRANGER, STRANGER);
            assertNull(named.withoutVariable(user, other, none, roots), "a stranger's");
            Files.createFile(Files.createDirectories(roots).resolve("gpuseg.sock"));
            assertEquals(roots, named.withoutVariable(user, other, none, roots).root());
            assertTrue(named.withoutVariable(user, other, none, roots).isOfRoot());
        }
    }

    private Path find(final String override, final Map<String, String> environment, final int uid, final Path roots) {
        return RuntimeDirectory.find(override, environment, uid, directory.resolve("none"), roots).root();
    }

    private RuntimeDirectory resolve(final String override, final Map<String, String> environment, final int uid) {
        return RuntimeDirectory.resolve(override, environment, uid, directory.resolve("none"));
    }

    @Test
    void shouldMakeADirectoryThatOthersCanEnterAndNotWrite() throws IOException {
        final RuntimeDirectory runtime = RuntimeDirectory.resolve(directory.resolve("run").toString());
        runtime.create();
        assertEquals("rwxr-xr-x", PosixFilePermissions.toString(Files.getPosixFilePermissions(runtime.root())));
    }

    @Test
    void shouldRefuseADirectoryThatIsALink() throws IOException {
        Files.createDirectory(directory.resolve("target"));
        Files.createSymbolicLink(directory.resolve("link"), directory.resolve("target"));
        assertThrows(IllegalStateException.class,
            () -> RuntimeDirectory.resolve(directory.resolve("link").toString()).create());
    }

    @Test
    void shouldRefuseADirectoryOfAnotherUser() throws IOException {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "only root can give a directory away");
        final RuntimeDirectory runtime = RuntimeDirectory.resolve(directory.resolve("run").toString());
        runtime.create();
        FileAccess.chown(runtime.root(), 1234, -1);
        final String refused = assertThrows(IllegalStateException.class, runtime::create).getMessage();
        assertTrue(refused.contains("belongs to uid 1234"), refused);
    }

    @Test
    void shouldShowTheDaemonOnTheStatusPage() {
        final Path path = directory.resolve("status");
        try (StatusPage page = StatusPage.create(path, 42, "edf", "a-name-that-is-too-long", 2);
            StatusPage seen = StatusPage.open(path)) {
            page.heartbeat(99);
            page.sleeping(true);
            assertEquals(42, seen.incarnationNs());
            assertEquals("edf", seen.policy());
            assertEquals("a-name-that-is-", seen.mechanism());
            assertEquals(2, seen.mechanismLevel());
            assertEquals(99, seen.heartbeatNs());
            assertTrue(seen.isSleeping());
            assertFalse(seen.doesNobodyWait());
            page.nobodyWaits(true);
            assertTrue(seen.doesNobodyWait());
            assertFalse(seen.isStopping());
            page.stopping();
            assertTrue(seen.isStopping());
            assertEquals(ProcessStatus.pid(), seen.daemonPid());
            assertTrue(ProcessStatus.isAlive(seen.daemonPid(), seen.daemonStartTicks()));
        }
    }

    @Test
    void shouldRefusePagesThatAreIncompleteOrOfAnotherVersion() throws IOException {
        final Path path = directory.resolve("page");
        Files.write(path, new byte[64]);
        assertThrows(IllegalStateException.class, () -> StatusPage.open(path));
        Files.write(path, new byte[4096]);
        assertThrows(IllegalStateException.class, () -> StatusPage.open(path));
        assertThrows(IllegalStateException.class, () -> WatchdogPage.map(path));
        Files.write(path, new byte[Abi.Held.SIZE + Abi.HELD_MAX * Abi.HeldEntry.SIZE]);
        assertThrows(IllegalStateException.class, () -> HeldFile.openOrCreate(path));
    }

    @Test
    void shouldRememberHeldContextsAcrossDaemons() {
        final Path path = directory.resolve("held");
        final byte[] payload = {1, 2, 3};
        try (HeldFile held = HeldFile.openOrCreate(path)) {
            assertEquals(0, held.hold(Abi.MECHANISM_SIM, 10, 11, 1, 12, 13, payload));
            assertEquals(1, held.hold(Abi.MECHANISM_SIM, 20, 21, 1, 22, 23, new byte[Abi.HELD_PAYLOAD]));
            held.release(1);
            assertThrows(IllegalArgumentException.class,
                () -> held.hold(1, 1, 1, 1, 1, 1, new byte[Abi.HELD_PAYLOAD + 1]));
        }
        final List<String> seen = new ArrayList<>();
        try (HeldFile next = HeldFile.openOrCreate(path)) {
            next.forEach((index, mechanism, pid, ticks, gpu, context, bytes) -> {
                assertArrayEquals(payload, bytes);
                seen.add(index + " " + mechanism + " " + pid + " " + ticks + " " + gpu + " " + context);
                next.release(index);
            });
            assertEquals(List.of("0 2 10 11 1 12"), seen);
            assertEquals(0, next.count());
            for (int i = 0; i < Abi.HELD_MAX; i++) {
                assertEquals(i, next.hold(1, 1, 1, 1, 1, 1, payload));
            }
            assertEquals(HeldFile.FULL, next.hold(1, 1, 1, 1, 1, 1, payload));
        }
    }

    @Test
    void shouldSealTheSessionAgainstShrinkingAndGrowing() throws IOException {
        try (Session session = Session.create(5, 42)) {
            assertEquals(Abi.SESSION_MAGIC, session.buffer().getInt(0));
            assertEquals(Abi.ABI_VERSION, session.buffer().getInt(Abi.Session.VERSION_OFFSET));
            try (FileChannel file = FileChannel.open(Descriptor.path(session.fd()), StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
                assertThrows(IOException.class, () -> file.truncate(0));
                assertThrows(IOException.class,
                    () -> file.write(ByteBuffer.allocate(1), Abi.SESSION_BYTES + 4096));
                assertEquals(Abi.SESSION_BYTES, file.size());
            }
        }
    }

    @Test
    void shouldWakeOnlyAClientThatWaits() {
        try (Session session = Session.create(5, 42)) {
            final int slot = session.allocateSlot();
            final int at = Abi.Session.SIZE + slot * Abi.Slot.SIZE;
            session.grant(slot, 7, Abi.VERDICT_GRANTED);
            assertEquals(7 << 8 | Abi.VERDICT_GRANTED, session.buffer().getLong(at));
            assertEquals(0, session.wakes());
            session.buffer().putInt(at + Abi.Slot.WAITING_OFFSET, 1);
            session.poison(Abi.POISON_QUOTA);
            assertEquals(7 << 8 | Abi.VERDICT_POISONED, session.buffer().getLong(at));
            assertEquals(Abi.POISON_QUOTA, session.buffer().getInt(Abi.Session.POISONED_OFFSET));
            assertEquals(1, session.wakes());
        }
    }

    @Test
    void shouldSayThatABeginIsExpectedOnlyToAClientThatAsks() {
        try (Session session = Session.create(5, 42)) {
            final int slot = session.allocateSlot();
            final int at = Abi.Session.SIZE + slot * Abi.Slot.SIZE;
            session.expected(slot);
            assertEquals(0, session.buffer().getInt(at + Abi.Slot.EXPECTED_OFFSET));
            assertEquals(0, session.wakes());
            session.buffer().putInt(at + Abi.Slot.WANTS_EXPECTED_OFFSET, 1);
            session.expected(slot);
            session.expected(slot);
            assertEquals(2, session.buffer().getInt(at + Abi.Slot.EXPECTED_OFFSET));
            assertEquals(2, session.wakes());
            session.releaseSlot(slot);
            assertEquals(slot, session.allocateSlot());
            session.expected(slot);
            assertEquals(0, session.buffer().getInt(at + Abi.Slot.EXPECTED_OFFSET), "the next task did not ask");
        }
    }

    @Test
    void shouldHandOutEverySlotOnce() {
        try (Session session = Session.create(5, 42)) {
            for (int i = 0; i < Abi.SLOTS_MAX; i++) {
                assertEquals(i, session.allocateSlot());
            }
            assertEquals(-1, session.allocateSlot());
            session.releaseSlot(17);
            assertEquals(17, session.allocateSlot());
            assertThrows(IllegalArgumentException.class, () -> session.state(64, 0));
        }
    }
}
