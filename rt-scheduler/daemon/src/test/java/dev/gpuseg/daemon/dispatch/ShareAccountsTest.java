/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.gpuseg.core.FixedPriority;
import java.util.List;
import org.junit.jupiter.api.Test;

class ShareAccountsTest {
    private static final int ALICE = 1001;
    private static final int BOB = 1002;
    private static final int CAROL = 1003;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final ShareAccounts accounts = new ShareAccounts(rig.scheduler, 2, rig.journal, rig.clock);

    @Test
    void shouldGiveAUserOneAccountWithHisMostGenerousShare() {
        final int alice = accounts.open(ALICE, 50);
        assertEquals(50, rig.scheduler.share(alice));
        assertEquals(alice, accounts.open(ALICE, 30));
        assertEquals(50, rig.scheduler.share(alice));
        assertEquals(alice, accounts.open(ALICE, 70));
        assertEquals(70, rig.scheduler.share(alice));
        assertNotEquals(alice, accounts.open(BOB, 50));
        assertEquals(ShareAccounts.NONE, accounts.open(CAROL, 100));
        assertEquals(List.of("share of account 1 is 50%", "share of account 1 is 70%", "share of account 2 is 50%"),
            rig.events.texts());
    }

    @Test
    void shouldKeepTheAccountOfAUserWithoutTasksUntilAnotherNeedsIt() {
        final int alice = accounts.open(ALICE, 50);
        accounts.close(ALICE, alice);
        assertEquals(alice, accounts.open(ALICE, 40), "with the credit that it had");
        assertEquals(40, rig.scheduler.share(alice));
        final int bob = accounts.open(BOB, 50);
        assertThrows(IllegalStateException.class, () -> accounts.open(CAROL, 50));
        accounts.close(BOB, bob);
        accounts.close(ALICE, alice);
        assertEquals(bob, accounts.open(CAROL, 60), "he has been without tasks for longest");
        assertEquals(60, rig.scheduler.share(bob));
        assertEquals(alice, accounts.open(ALICE, 50));
    }
}
