/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.conductor.ConductorProxy;
import java.util.ArrayList;
import java.util.List;

/** Writes down the dispatcher's answers. */
public final class FakeConductor implements ConductorProxy {
    final List<String> answers = new ArrayList<>();
    /** Of the task that was opened last. */
    int taskId;

    @Override
    public void taskOpened(final long correlation, final int status, final int id, final int slot, final String text) {
        taskId = id;
        answers.add("opened " + correlation + " status " + status + (text.isEmpty() ? "" : " " + text));
    }

    @Override
    public void taskClosed(final long correlation, final int status, final String text) {
        answers.add("closed " + correlation + " status " + status + (text.isEmpty() ? "" : " " + text));
    }

    @Override
    public void poisoned(final int clientId, final int code, final String text) {
        answers.add("poisoned " + clientId + " code " + code + " " + text);
    }

    @Override
    public void clientRemoved(final int clientId) {
        answers.add("removed " + clientId);
    }

    @Override
    public void adminReply(final long correlation, final int status, final String json) {
        answers.add("reply " + correlation + " status " + status + " " + json);
    }

    public String last() {
        return answers.get(answers.size() - 1);
    }
}
