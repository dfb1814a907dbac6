/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.PeerProcess;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class UnreadRepliesTest {
    private static final byte[] MIB = new byte[1 << 20];

    private final UnreadReplies unread = new UnreadReplies();
    private final List<Connection> all = new ArrayList<>();

    private Connection connection(final int uid, final int mebibytes) {
        final Connection made = new Connection(all.size() + 1, null,
            new PeerProcess(new PeerCredentials(1, uid, uid), List.of(), null, false), uid);
        all.add(made);
        for (int i = 0; i < mebibytes; i++) {
            unread.add(made, MIB);
        }
        return made;
    }

    @Test
    void shouldCloseTheLargestConnectionOfAUserWithMoreThanEightMebibytes() {
        final Connection small = connection(1, 3);
        final Connection large = connection(1, 4);
        assertNull(unread.excess(small, all));
        unread.add(small, MIB);
        assertTrue(unread.of(1) > UnreadReplies.USER_BYTES);
        unread.remove(small, MIB);
        unread.add(large, MIB);
        assertSame(large, unread.excess(small, all));
        unread.forget(large);
        assertNull(unread.excess(small, all));
    }

    @Test
    void shouldCloseTheLargestConnectionOfTheGreediestUserWhenAllHaveMoreThanThirtyTwo() {
        connection(1, 3);
        final Connection greediest = connection(1, 4);
        for (int uid = 2; uid <= 5; uid++) {
            connection(uid, 6);
        }
        final Connection last = connection(6, 0);
        assertNull(unread.excess(last, all));
        unread.add(last, MIB);
        assertTrue(unread.total() > UnreadReplies.BYTES_MAX);
        assertSame(greediest, unread.excess(last, all), "not the one that came last");
        assertEquals(1 << 20, unread.of(6), 100);
    }
}
