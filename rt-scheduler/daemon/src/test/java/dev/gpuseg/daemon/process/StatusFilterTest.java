/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;

class StatusFilterTest {
    private static final int ALICE = 1000;
    private static final int BOB = 1001;
    private static final String BOTH = """
        {"clients": [{"client": 1, "uid": 1000, "pid": 11}, {"client": 2, "uid": 1001, "pid": 22}],
         "tasks": [{"id": 1, "client": 1, "name": "secret"}, {"id": 2, "client": 2, "name": "mine"}],
         "gpus": [{"gpu": 0, "running_task": 1, "contexts": [{"context": 5, "pid": 11}, {"context": 6, "pid": 22},
                                                             {"context": 7, "pid": 33}]}]}
        """;

    private static ObjectNode seenBy(final int uid, final IntPredicate shown) throws Exception {
        final ObjectNode root = (ObjectNode) new ObjectMapper().readTree(BOTH);
        StatusFilter.keepOwn(root, uid, shown);
        return root;
    }

    private static ObjectNode seenBy(final int uid) throws Exception {
        return seenBy(uid, pid -> true);
    }

    @Test
    void shouldShowAContainerNothingOfTheUserWithTheSameNumberOutside() throws Exception {
        assertEquals(seenBy(0), seenBy(ALICE, pid -> pid != 11));
    }

    @Test
    void shouldKeepClientsTasksAndContextsOfOneUserAndNotSayWhoElseRuns() throws Exception {
        assertEquals("{\"clients\":[{\"client\":2,\"uid\":1001,\"pid\":22}],\"tasks\":[{\"id\":2,\"client\":2,"
            + "\"name\":\"mine\"}],\"gpus\":[{\"gpu\":0,\"contexts\":[{\"context\":6,\"pid\":22}]}]}",
            seenBy(BOB).toString());
    }

    @Test
    void shouldSayThatHisOwnTaskRuns() throws Exception {
        assertEquals(1, seenBy(ALICE).path("gpus").get(0).path("running_task").asInt());
    }

    @Test
    void shouldLeaveNothingToAUserWithoutAClient() throws Exception {
        final ObjectNode seen = seenBy(0);
        assertTrue(seen.path("clients").isEmpty() && seen.path("tasks").isEmpty()
            && seen.path("gpus").get(0).path("contexts").isEmpty(), seen::toString);
    }
}
