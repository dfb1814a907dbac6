/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Priority;
import dev.gpuseg.daemon.admission.ProvenAdmission;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.conductor.DispatcherProxy;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.dispatch.ClientRegistry;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.dispatch.StatusView;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.daemon.policy.SavedPolicy;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Carries the conductor's requests onto the dispatcher thread. Text is parsed on the caller's thread and rendered on
 * the background thread, so that the dispatcher handles neither.
 */
final class DispatcherCommands implements DispatcherProxy {
    private static final int EPERM = -1;
    private static final int ENOENT = -2;
    private static final int EIO = -5;
    private static final int NOT_ADMITTED = -Abi.ADMISSION_REFUSED;
    private static final int EINVAL = -22;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int REHEARSALS = 16;

    /**
     * Whom commands concern.
     *
     * @param dispatcher  whose thread runs the commands
     * @param background  runs what may take long
     * @param shown       what the daemon says of itself
     * @param requestStop called with the process that asked
     * @param policies    the policies that can be set
     * @param saved       remembers what is changed; used on the background thread
     * @param admission   asked before a change; null while it is off
     * @param conductor   where answers go; asked for with the first answer
     */
    record Context(DispatcherAgent dispatcher, Executor background, DaemonStatus shown, Consumer<String> requestStop,
        PolicySource policies, SavedPolicy saved, ProvenAdmission admission, Supplier<ConductorProxy> conductor) {
    }

    private final Context context;
    private final DispatcherAgent dispatcher;
    private final Executor background;
    private final ProvenAdmission admission;
    /** By correlation: of commands in progress whose answer is no JSON. Each command is answered once. */
    private final Map<Long, AnswerForm> forms = new ConcurrentHashMap<>();

    DispatcherCommands(final Context context) {
        this.context = context;
        dispatcher = context.dispatcher();
        background = context.background();
        admission = context.admission();
    }

    /**
     * Loads and links what the commands need that every member may send: the dispatcher's first answer took 3 to 4 ms
     * in place of 0.1, and whoever floods a daemon that has just started would choose when. On the thread that starts
     * the daemon, before the dispatcher's runs.
     */
    void rehearse() {
        for (int i = 0; i < REHEARSALS; i++) {
            final ObjectNode answer = dispatcher.snapshot().take(StatusView.ALL);
            context.shown().complete(answer, StatusView.ALL);
            for (final String json : List.of(answer.toString(), "{")) {
                try {
                    JSON.readTree(json);
                } catch (final JsonProcessingException e) {
                    continue;   // as of the second: a refusal is loaded, too
                }
            }
        }
    }

    /** Does something unless admission speaks against it; on the background thread if it has to be asked. */
    private void ifAdmitted(final long correlation, final Function<ProvenAdmission, String> refusal,
        final Runnable then) {
        if (admission == null) {
            then.run();
            return;
        }
        background.execute(() -> {
            final String refused = refusal.apply(admission);
            if (refused == null) {
                then.run();
            } else {
                refuse(correlation, NOT_ADMITTED, refused);
            }
        });
    }

    /** Does something unless a policy from a jar is found to break a law; on the background thread if it is checked. */
    private void ifConforming(final long correlation, final Policy policy, final Runnable then) {
        if (policy == null || context.policies().isAccepted(policy)) {
            then.run();
            return;
        }
        background.execute(() -> {
            final String refused = context.policies().refusal(policy);
            if (refused == null) {
                then.run();
            } else {
                refuse(correlation, EINVAL, refused);
            }
        });
    }

    @Override
    public String refusal(final int pid) {
        return dispatcher.processes().hasNumbersFor(pid) ? null
            : ClientRegistry.noNumbers(dispatcher.processes().numbers());
    }

    @Override
    public void addClient(final Client client) {
        dispatcher.submit(() -> dispatcher.clients().add(client));
    }

    @Override
    public void removeClient(final int clientId, final int reason) {
        dispatcher.submit(() -> dispatcher.clients().remove(clientId, reason));
    }

    @Override
    public void openTask(final TaskOpen request) {
        dispatcher.submit(() -> dispatcher.clients().openTask(request));
    }

    @Override
    public void closeTask(final long correlation, final int clientId, final int taskId) {
        dispatcher.submit(() -> dispatcher.clients().closeTask(correlation, clientId, taskId));
    }

    @Override
    public void admin(final long correlation, final PeerCredentials peer, final AskingGroup group,
        final String json) {
        final JsonNode request;
        try {
            request = JSON.readTree(json);
        } catch (final JsonProcessingException e) {
            refuse(correlation, EINVAL, "the command is not JSON: " + e.getOriginalMessage());
            return;
        }
        final String command = request.path("command").asText("");
        final AnswerForm form = AnswerForm.named(request.path("form").asText(""));
        if (form == null) {
            refuse(correlation, EINVAL, "form \"" + request.path("form").asText()
                + "\" is unknown; use json, text or tasks");
            return;
        }
        if (form != AnswerForm.JSON) {
            forms.put(correlation, form);
        }
        if (!"status".equals(command) && !mayChange(peer)) {   // "live" shows all users
            refuse(correlation, EPERM, "command \"" + command + "\": uid " + peer.uid()
                + " may only ask for the status; run it with sudo, or as the daemon's user");
            return;
        }
        if (!"status".equals(command) && group.isRuled()) {
            refuse(correlation, EPERM, "command \"" + command + "\": process " + peer.pid() + " is in a control group "
                + "whose priorities are limited, or the group is not known, and may only ask for the status; ask "
                + "from another group");
            return;
        }
        switch (command) {
            case "status":
                status(correlation, viewOf(peer, group));
                break;
            case "live":
                background.execute(() -> live(correlation, request));
                break;
            case "stop":
                reply(correlation, JsonNodeFactory.instance.objectNode().put("stopping", true));
                context.requestStop().accept("pid " + peer.pid() + ", uid " + peer.uid());
                break;
            case "policy":
                policy(correlation, request);
                break;
            case "set":
            case "hint":   // of earlier tools
                set(correlation, request);
                break;
            default:
                refuse(correlation, EINVAL, "command \"" + command
                    + "\" is unknown; use status, live, stop, set or policy");
                break;
        }
    }

    /**
     * Whether a peer may change what concerns others, and see it.
     *
     * @param peer the process that asks, from the kernel
     * @return true for root and for the daemon's own user
     */
    static boolean mayChange(final PeerCredentials peer) {
        return peer.uid() == 0 || peer.uid() == ProcessStatus.effectiveUid();
    }

    private static StatusView viewOf(final PeerCredentials peer, final AskingGroup group) {
        return group.isRuled() ? StatusView.ofGroup(peer.uid(), group.path())
            : mayChange(peer) ? StatusView.ALL : StatusView.ofUser(peer.uid());
    }

    private void status(final long correlation, final StatusView view) {
        dispatcher.submit(() -> {
            final ObjectNode snapshot = dispatcher.snapshot().take(view);
            background.execute(() -> {
                try {
                    context.shown().complete(snapshot, view);
                } catch (final RuntimeException e) {
                    refuse(correlation, EIO, "status: " + e);   // every command is answered, or its user waits for ever
                    return;
                }
                reply(correlation, snapshot);
            });
        });
    }

    private void live(final long correlation, final JsonNode request) {
        final ObjectNode view;
        try {
            view = context.shown().live(request);
        } catch (final RuntimeException e) {
            refuse(correlation, EIO, "live: " + e);
            return;
        }
        reply(correlation, view);
    }

    private void policy(final long correlation, final JsonNode request) {
        final JsonNode given = !request.has("policy") ? request.path("settings")
            : JsonNodeFactory.instance.objectNode().set("policy", request.path("policy"));
        final boolean save = request.path("save").asBoolean(false);
        final boolean forget = request.path("forget").asBoolean(false);
        final PolicySettings settings;
        try {
            settings = given.isMissingNode() ? PolicySettings.NONE : context.policies().reader().read(given, "policy");
            dispatcher.policy().requireUsable(settings);
        } catch (final IllegalArgumentException e) {
            refuse(correlation, EINVAL, e.getMessage());
            return;
        }
        ifConforming(correlation, settings.policy(), () ->
            ifAdmitted(correlation, proven -> proven.refuseSettings(settings), () -> dispatcher.submit(() -> {
                dispatcher.policy().apply(settings);
                final ObjectNode answer = JsonNodeFactory.instance.objectNode();
                dispatcher.policy().describe(answer.putArray("lines")::add);
                background.execute(() -> keep(correlation, given, save, forget, answer));
            })));
    }

    /** The last step of a policy command: what was changed is remembered, and kept if that was asked for. */
    private void keep(final long correlation, final JsonNode given, final boolean save, final boolean forget,
        final ObjectNode answer) {
        try {
            if (!given.isMissingNode()) {
                context.saved().changed(given);
            }
            if (save) {
                context.saved().save();
            }
            if (forget) {
                context.saved().forget();
            }
        } catch (final IOException e) {
            refuse(correlation, EIO, e.getMessage());
            return;
        }
        if (context.saved().exists()) {
            answer.withArray("lines").add("saved in " + context.saved().path() + " for the next start");
        }
        reply(correlation, answer);
    }

    /** Weight and cap of one process, registered or not; a rule of the policy would hold for all tasks of a name. */
    private void share(final long correlation, final JsonNode request) {
        final int pid = request.path("pid").asInt(0);
        final ObjectNode given = JsonNodeFactory.instance.objectNode();
        final ObjectNode rule = given.putArray("tasks").addObject().put("task", "process " + pid);
        for (final String key : List.of("weight", "cap")) {
            if (request.has(key)) {
                rule.set(key, request.get(key));
            }
        }
        final PolicySettings settings;
        try {
            if (pid <= 0 || rule.size() == 1) {
                throw new IllegalArgumentException("set: pid " + request.path("pid").asText() + " with neither weight "
                    + "nor cap; name a process and what to change");
            }
            settings = context.policies().reader().read(given, "set");
            dispatcher.policy().requireUsable(settings);
        } catch (final IllegalArgumentException e) {
            refuse(correlation, EINVAL, e.getMessage());
            return;
        }
        ifAdmitted(correlation, proven -> proven.refuseSettings(settings), () -> dispatcher.submit(() -> {
            final ObjectNode answer = JsonNodeFactory.instance.objectNode();
            if (dispatcher.policy().setShare(pid, settings.taskRules().get(0).share(),
                answer.putArray("changed")::add)) {
                reply(correlation, answer);
            } else {
                refuse(correlation, ENOENT, "set: no process " + pid + " uses a GPU; `gpuseg status` lists those that "
                    + "do");
            }
        }));
    }

    private void set(final long correlation, final JsonNode request) {
        if (request.has("pid")) {
            share(correlation, request);
            return;
        }
        final String task = request.path("task").asText("");
        final int priority = request.path("priority").asInt(Priority.BELOW_ALL);
        final int gpuPriority = request.path("gpu_priority").asInt(0);
        if (task.isEmpty() || !Priority.isValid(priority) || !Priority.isValid(gpuPriority)
            || !Priority.isRealTime(priority) && Priority.isRealTime(gpuPriority)) {
            refuse(correlation, EINVAL, "set: task \"" + task + "\", priority " + priority + ", gpu_priority "
                + gpuPriority + "; name a task (or its id) and priorities of 0..99");
            return;
        }
        final int resolved = Priority.isRealTime(gpuPriority) ? gpuPriority : priority;
        final int id = task.chars().allMatch(Character::isDigit) && task.length() < 8 ? Integer.parseInt(task) : 0;
        ifAdmitted(correlation, proven -> proven.refusePriority(id, task, priority, resolved),
            () -> dispatcher.submit(() -> set(correlation, id, task, priority, resolved)));
    }

    /** On the dispatcher's thread. */
    private void set(final long correlation, final int id, final String task, final int priority,
        final int gpuPriority) {
        final ObjectNode answer = JsonNodeFactory.instance.objectNode();
        final int status = dispatcher.policy().setPriority(id, task, priority, gpuPriority,
            answer.putArray("changed")::add);
        if (status == 0) {
            reply(correlation, answer);
        } else {
            refuse(correlation, status, "set: no open task \"" + task + "\"; `gpuseg status` lists them");
        }
    }

    private void reply(final long correlation, final ObjectNode node) {
        answer(correlation, 0, node);
    }

    private void refuse(final long correlation, final int status, final String text) {
        answer(correlation, status, JsonNodeFactory.instance.objectNode().put("error", text));
    }

    private void answer(final long correlation, final int status, final ObjectNode node) {
        final AnswerForm form = forms.remove(correlation);
        context.conductor().get().adminReply(correlation, status, form == null ? node.toString() : form.write(node));
    }
}
