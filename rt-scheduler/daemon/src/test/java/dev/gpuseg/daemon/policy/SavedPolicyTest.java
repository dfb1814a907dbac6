/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.policy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class SavedPolicyTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PolicyReader READER = new PolicyReader(PolicyCatalog.builtIn());

    @TempDir
    private Path directory;

    private Path path() {
        return directory.resolve("policy.json");
    }

    private SavedPolicy saved() {
        return new SavedPolicy(path(), READER);
    }

    private static JsonNode change(final String text) throws IOException {
        return JSON.readTree(text.replace('\'', '"'));
    }

    private JsonNode file() throws IOException {
        return JSON.readTree(path().toFile());
    }

    @Test
    void shouldBelieveNothingThatIsNotAPolicyFileOfThisUser() throws IOException {
        for (final String bad : new String[] {"", "[]", "7", "{\"version\":2}", "{\"policy\":\"best\"}",
            "{\"polcy\":\"fp\"}", "{\"tasks\":[{\"weight\":3}]}", "{\"version\":1,\"policy\":\"fp\"", "\u0000"}) {
            Files.writeString(path(), bad);
            final String text = assertThrows(IllegalArgumentException.class, () -> saved().read(), bad).getMessage();
            assertTrue(text.contains(path().toString()) && text.lines().count() == 1, text);
        }
        Files.write(path(), new byte[(1 << 20) + 1]);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> saved().read()).getMessage()
            .contains("remove it"));
        Files.delete(path());
        Files.createSymbolicLink(path(), Files.writeString(directory.resolve("elsewhere"), "{\"policy\":\"edf\"}"));
        assertThrows(IllegalArgumentException.class, () -> saved().read(), "links are not followed");
        if (ProcessStatus.effectiveUid() == 0) {
            Files.delete(path());
            FileAccess.chown(Files.writeString(path(), "{\"policy\":\"edf\"}"), 1234, -1);
            assertThrows(IllegalArgumentException.class, () -> saved().read(), "another user's");
        }
    }

    @Test
    void shouldKeepNothingUntilItIsAskedTo() throws IOException {
        final SavedPolicy saved = saved();
        assertSame(PolicySettings.NONE, saved.read());
        saved.changed(change("{'policy':'edf'}"));
        assertFalse(saved.exists());
        saved.save();
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path())));
        assertEquals("edf", saved().read().policy().name());
        assertTrue(saved.forget());
        assertFalse(saved.forget());
        assertFalse(saved.exists());
    }

    @Test
    void shouldJoinChangesAsTheDaemonDoes() throws IOException {
        final SavedPolicy saved = saved();
        saved.changed(change("{'policy':'partitions','frame':'100ms','guard':'1ms','windows':[{'partition':1,"
            + "'offset':'0ms','length':'50ms'}],'sharing':'turns','quantum':'5ms',"
            + "'tasks':[{'task':'a','weight':300,'overrun':'suspend'}],'groups':[{'group':7,'weight':50}]}"));
        saved.changed(change("{'tasks':[{'task':'a','cap':'25ms/100ms','weight':400},"
            + "{'task':'b','overrun':'notify'}]}"));
        saved.save();
        final PolicySettings first = saved().read();
        assertTrue(first.policy().timetable().isPresent());
        assertEquals(2, first.taskRules().size());
        assertEquals(400, first.taskRules().get(0).share().weight());
        assertEquals(25_000_000, first.taskRules().get(0).share().quotaNs());
        assertEquals(OverrunAction.SUSPEND, first.taskRules().get(0).overrun());
        saved.changed(change("{'policy':'fp','sharing':'timeslices','groups':[{'group':7,'cap':'none'}]}"));
        saved.save();
        assertFalse(file().has("frame") || file().has("windows") || file().has("quantum"), file().toString());
        assertEquals("{\"group\":7,\"weight\":50,\"cap\":\"none\"}", file().path("groups").get(0).toString());
        assertEquals("fp", saved().read().policy().name());
    }

    @Test
    void shouldAddToWhatWasReadOnlyIfItHolds() throws IOException {
        Files.writeString(path(), "{\"version\":1,\"policy\":\"edf\"}");
        final SavedPolicy refused = saved();
        assertEquals("edf", refused.read().policy().name());
        refused.changed(change("{'tasks':[{'task':'a','weight':3}]}"));
        refused.save();
        assertFalse(file().has("policy"));
        Files.writeString(path(), "{\"version\":1,\"policy\":\"edf\"}");
        final SavedPolicy accepted = saved();
        accepted.read();
        accepted.accepted();
        accepted.changed(change("{'tasks':[{'task':'a','weight':3}]}"));
        accepted.save();
        assertEquals("edf", file().path("policy").asText());
        assertEquals(3, file().path("tasks").get(0).path("weight").asInt());
    }

    @Test
    void shouldSayWhereItCannotWrite() throws IOException {
        final SavedPolicy nowhere = new SavedPolicy(directory.resolve("missing/policy.json"), READER);
        final String text = assertThrows(IOException.class, nowhere::save).getMessage();
        assertTrue(text.contains("missing/policy.json cannot be written"), text);
    }
}
