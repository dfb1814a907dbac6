/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.UserNames;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SudoCallerTest {
    private static final int ALICE = 1001;
    private static final int FAR = 0xffff_fffe;

    private final List<String> said = new ArrayList<>();

    private static Optional<String> name(final int uid) {
        return switch (uid) {
            case 0 -> Optional.of("root");
            case ALICE -> Optional.of("alice");
            case FAR -> Optional.of("far");
            default -> Optional.empty();
        };
    }

    private Optional<SudoCaller> caller(final String uid, final int realUid) {
        final Map<String, String> environment = new HashMap<>(Map.of("SUDO_GID", "100", "SUDO_USER", "bob"));
        if (uid != null) {
            environment.put("SUDO_UID", uid);
        }
        return SudoCaller.of(environment, realUid, SudoCallerTest::name, said::add);
    }

    @ParameterizedTest
    @ValueSource(strings = {"alice", "-1", "+1001", "01001", "1001 ", "0x3e9", "1001\n", "4294967295", "4294967296",
        "99999999999", "1e3", "00", "\u0661\u0660\u0660\u0661"})
    void shouldServeNoUserForWhatIsNoNumberOfOneAndSayIt(final String uid) {
        assertEquals(Optional.empty(), caller(uid, 0));
        assertEquals(1, said.size());
        assertTrue(said.get(0).startsWith("SUDO_UID is \"") && said.get(0).contains("no number of a user")
            && said.get(0).contains("unset it") && !said.get(0).contains("\n"), said::toString);
    }

    @Test
    void shouldServeNoUserWhomTheMachineDoesNotHaveAndSayIt() {
        assertEquals(Optional.empty(), caller("1002", 0));
        assertEquals(List.of("SUDO_UID is 1002, and this machine has no such user; no user is served for it: unset it, "
            + "or start the daemon with sudo"), said);
    }

    @Test
    void shouldBelieveNoVariableOfAProcessThatIsNotRoots() {
        assertEquals(Optional.empty(), caller("1001", ALICE));
        assertEquals(Optional.empty(), caller("1001", 1002));
        assertEquals(Optional.empty(), caller("nonsense", ALICE));
        assertEquals(List.of(), said);
    }

    @Test
    void shouldServeNoUserForRootItselfOrWithoutSudo() {
        assertEquals(Optional.empty(), caller("0", 0));
        assertEquals(Optional.empty(), caller("", 0));
        assertEquals(Optional.empty(), caller(null, 0));
        assertEquals(List.of(), said);
    }

    @Test
    void shouldServeTheUserWhoCalledSudo() {
        assertEquals(Optional.of(new SudoCaller(ALICE, "alice")), caller("1001", 0));
        assertEquals(Optional.of(new SudoCaller(FAR, "far")), caller("4294967294", 0));
        assertEquals(List.of(), said);
    }

    @Test
    void shouldKnowTheUsersOfThisMachine() {
        assertEquals(Optional.of("root"), UserNames.of(0));
        assertEquals(Optional.empty(), UserNames.of(FAR));
    }
}
