/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - a connection: connect, the roll thread, reconnect, disconnect. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <fcntl.h>

#include "client.h"
#include "directory.h"
#include "internal.h"
#include "refusal.h"
#include "registration.h"
#include "say.h"

/*
 * Races that this file had once, or could have: 1 to 3. tests/check_races.sh builds each and expects ThreadSanitizer
 * to report it in tests/test_threads.c. Never defined in a library.
 */
#ifndef GPUSEG_PLANT_RACE
#define GPUSEG_PLANT_RACE 0
#elif !defined(__SANITIZE_THREAD__)
#error "GPUSEG_PLANT_RACE is for tests under gcc's ThreadSanitizer only"
#endif

#define ROLL_THREAD_STACK (128 * 1024)
#define FLAGS_KNOWN (GPUSEG_CONNECT_UNMANAGED_OK | GPUSEG_CONNECT_ONCE | GPUSEG_CONNECT_FAIL_IF_LOST)
#define QUEUE_FILE_SINCE_MINOR 9 /* of the ABI: daemons before that drop a client that asks for a file */

/*
 * A word that is 1 in the process that created it and 0 in its children. The kernel clears the page on fork
 * (MADV_WIPEONFORK, also for a bare clone(2)); where the kernel cannot do that, the fork handler does.
 */
static uint32_t *own_process;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static void in_forked_child(void)
{
	thread_id_forked();
	boost_forked();
	if (own_process)
		__atomic_store_n(own_process, 0, __ATOMIC_RELEASE);
	/* The next connect of this process creates a new word; old handles keep pointing at the cleared one. */
	own_process = NULL;
	process_once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static void mark_process(void)
{
	static bool registered; /* children inherit handlers, so register only once */
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	madvise(p, 4096, MADV_WIPEONFORK);
	if (!registered && pthread_atfork(NULL, NULL, in_forked_child) != 0) {
		munmap(p, 4096);
		return;
	}
	registered = true;
	own_process = p;
	__atomic_store_n(own_process, 1, __ATOMIC_RELEASE);
}

/* ---- roll thread ---- */

static void follow_lost(struct gpuseg_client *client);
static void free_former(struct gpuseg_client *client);

/* Does anybody go on while the daemon is lost, so that a line is to say so? Otherwise the marks do. */
static bool is_silent(const struct gpuseg_client *client)
{
	return __atomic_load_n(&client->root->fails_if_lost, __ATOMIC_RELAXED);
}

/* Once for each loss. */
static void say_lost(const struct gpuseg_client *client)
{
	if (is_silent(client))
		return;
	if (__atomic_load_n(&client->lost, __ATOMIC_RELAXED) == LOST_DESCRIPTORS)
		say("the program has closed descriptors of its connection to the daemon; \"%s\" runs unmanaged%s",
		    client->root->name, client->root->dir ? " until it has connected again" : "");
	else
		say("daemon %d is gone; \"%s\" runs unmanaged%s", client->session->daemon_pid, client->root->name,
		    client->root->dir ? " until another one has started" : "");
}

static void *roll_main(void *arg)
{
	struct gpuseg_client *client = arg;
	const uint32_t *generation = client->roll_word;
	const bool reconnects = client->root->dir != NULL, looks = reconnects || !is_silent(client);

	for (;;) {
		uint32_t seen = __atomic_load_n(generation, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&client->roll_stop, __ATOMIC_ACQUIRE))
			break;
		/* After a failure the appender maps the cycle itself, which remaps_inline counts. */
		(void)cq_service(&client->queue);
		futex_wait(generation, seen, looks ? now_ns() + LOST_LOOK_NS : INT64_MAX);
		/* A client that the daemon dropped is faulty and must not reconnect. */
		if (looks && !__atomic_load_n(&client->session->poisoned, __ATOMIC_ACQUIRE) && client_lost(client)) {
			say_lost(client);
			if (reconnects)
				follow_lost(client);
			break;
		}
		free_former(client);
	}
	__atomic_store_n(&client->roll_exited, 1, __ATOMIC_RELEASE);
	futex_wake_all(&client->roll_exited);
	return NULL;
}

static int start_roll_thread(struct gpuseg_client *client)
{
	const struct sched_param normal = {0};
	sigset_t all, before;
	pthread_attr_t attr;
	int ret;

	client->roll_word = &client->session->roll_generation;
	ret = pthread_attr_init(&attr);
	if (ret)
		return -ret;
	/*
	 * Do not inherit the priority of the connecting thread: mapping a file ahead is not urgent, and the appender
	 * can do without it.
	 */
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	pthread_attr_setstacksize(&attr, ROLL_THREAD_STACK);
	/* Signal handlers of the application must not run on a thread that it does not know. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	client->roll_thread_runs = true; /* before: it may be replaced, and its successor reads this */
	ret = pthread_create(&client->roll_thread, &attr, roll_main, client);
	if (ret)
		client->roll_thread_runs = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

static void stop_roll_thread(struct gpuseg_client *client)
{
	if (!client->roll_thread_runs)
		return;
	__atomic_store_n(&client->roll_stop, 1, __ATOMIC_RELEASE);
	futex_wake_all(&client->roll_stop); /* it may be reconnecting */
	/*
	 * The futex word belongs to the daemon, so we cannot change it to prevent a wait that is about to begin. Repeat
	 * the wake-up until the thread has ended.
	 */
	while (!__atomic_load_n(&client->roll_exited, __ATOMIC_ACQUIRE)) {
		futex_wake_all(client->roll_word);
		futex_wait(&client->roll_exited, 0, now_ns() + NS_PER_MS);
	}
	pthread_join(client->roll_thread, NULL);
	client->roll_thread_runs = false;
}

/* ---- connect ---- */

static void set_socket_timeout(int fd, int64_t ns)
{
	struct timeval tv = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_usec = (suseconds_t)(ns % NS_PER_S / NS_PER_US)};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/*
 * Everybody can make a directory in /dev/shm, and a socket in it. `named`: the application or its user has said which
 * directory, so it need not belong to root or this user.
 */
static int open_socket(struct gpuseg_client *client, const char *dir, bool named)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[REFUSAL_BYTES];
	int n, ret;

	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, GPUSEG_SOCKET_NAME);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return fail_with(NULL, -ENAMETOOLONG,
				 "socket path %.80s.../%s exceeds %zu bytes; choose a shorter GPUSEG_DIR", dir,
				 GPUSEG_SOCKET_NAME, sizeof(address.sun_path) - 1);
	if (!named && is_directory(dir) && !is_believed(dir))
		return fail_with(NULL, -ENOTCONN,
				 "no daemon of root or this user: %s belongs to another one; remove it, or name a "
				 "directory with GPUSEG_DIR",
				 dir);
	n = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (n < 0)
		return fail_with(NULL, -errno, "socket: %s", strerror(errno));
	descriptor_take(&client->socket, n);
	set_socket_timeout(n, REQUEST_TIMEOUT_NS);
	do {
		ret = connect(n, (struct sockaddr *)&address, sizeof(address));
	} while (ret < 0 && errno == EINTR);
	if (ret == 0 && (named || is_daemon_of(n, dir)))
		return 0;
	ret = ret == 0 ? -EPERM : -errno;
	descriptor_close(&client->socket);
	if (ret == -EPERM)
		return fail_with(NULL, -ENOTCONN,
				 "no daemon of root or this user listens at %s; name its directory with "
				 "GPUSEG_DIR if it is to be trusted",
				 address.sun_path);
	if (ret == -ENOENT || ret == -ECONNREFUSED || ret == -ENOTDIR) {
		say_no_daemon(text, address.sun_path, dir, secure_getenv("GPUSEG_DIR"),
			      secure_getenv("XDG_RUNTIME_DIR"), ": start `gpuseg run`, or set GPUSEG_UNMANAGED=1");
		return fail_with(NULL, -ENOTCONN, "%s", text);
	}
	if (ret == -EACCES) {
		say_no_permission(text, address.sun_path);
		return fail_with(NULL, ret, "%s", text);
	}
	if (ret == -EAGAIN)
		ret = -ETIMEDOUT;
	return fail_with(NULL, ret, "connect to %s: %s", address.sun_path, strerror(-ret));
}

static int map_session(struct gpuseg_client *client, int fd, const struct gpuseg_msg_hello_reply *reply)
{
	struct gpuseg_session *session;
	struct stat st;
	int seals;

	if (fstat(fd, &st) < 0 || st.st_size < (off_t)GPUSEG_SESSION_BYTES ||
	    reply->session_size != GPUSEG_SESSION_BYTES)
		return fail_with(NULL, -EPROTO, "session of %u bytes (file %lld) from the daemon; expected %zu",
				 reply->session_size, (long long)st.st_size, (size_t)GPUSEG_SESSION_BYTES);
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) /* a page that is cut off ends this process with SIGBUS */
		return fail_with(NULL, -EPROTO,
				 "the session from the daemon can be made shorter; is it a gpuseg daemon?");
	session = mmap(NULL, GPUSEG_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (session == MAP_FAILED)
		return fail_with(NULL, -errno, "map session: %s", strerror(errno));
	client->session = session;
	madvise(session, GPUSEG_SESSION_BYTES, MADV_DONTFORK);
	if (__atomic_load_n(&session->version, __ATOMIC_ACQUIRE) >> 16 != GPUSEG_ABI_MAJOR ||
	    session->magic != GPUSEG_SESSION_MAGIC || session->header_size != sizeof(struct gpuseg_session) ||
	    session->slot_size != sizeof(struct gpuseg_slot) || session->slot_count > GPUSEG_SLOTS_MAX)
		return fail_with(NULL, -EPROTONOSUPPORT,
				 "session has magic %#x, version %#x; this library knows layout %d.%d", session->magic,
				 session->version, GPUSEG_ABI_MAJOR, GPUSEG_ABI_MINOR);
	if (session->incarnation != reply->incarnation)
		return fail_with(NULL, -EPROTO, "session belongs to another run of the daemon; connect again");
	return 0;
}

/*
 * cq_source.open: ask the daemon for a file of the client's own queue. On the thread that connects or the roll thread.
 * The descriptor is believed no further than a file that was opened by path: cq.c looks at kind, size and content.
 */
static int ask_for_file(void *arg, int64_t cycle, char *text)
{
	struct gpuseg_client *client = arg;
	struct gpuseg_msg_queue_file request = {.msg.type = GPUSEG_MSG_QUEUE_FILE, .cycle = cycle};
	struct gpuseg_msg_queue_file_reply reply = {.cycle = 0};
	int descriptors[2], flags, ret;

	pthread_mutex_lock(&client->root->request_mutex);
	ret = client_exchange(client, &request.msg, sizeof(request), &reply.msg, sizeof(reply), descriptors);
	pthread_mutex_unlock(&client->root->request_mutex);
	if (ret == 0) {
		flags = descriptors[0] < 0 ? -1 : fcntl(descriptors[0], F_GETFL);
		if (flags >= 0 && (flags & O_ACCMODE) == O_RDWR && descriptors[1] < 0 && reply.cycle == cycle)
			return descriptors[0];
		ret = fail_with(client, -EPROTO,
				"the daemon's answer is not one writable file of cycle %lld of the queue",
				(long long)cycle);
	}
	close_descriptors(descriptors);
	snprintf(text, CQ_TEXT_BYTES, "%.*s", CQ_TEXT_BYTES - 1,
		 reply.msg.status == ret && is_text(reply.text, sizeof(reply.text)) ? reply.text
										    : gpuseg_last_message(client));
	return ret;
}

/* cq_source.hurry. */
static void hurry_roll_thread(void *arg)
{
	futex_wake_all(((struct gpuseg_client *)arg)->roll_word);
}

/*
 * The files cannot be opened for writing by path, for `reason`: the mount is read-only, or of a user namespace in which
 * the client's user does not own them.
 */
static int attach_given(struct gpuseg_client *client, const struct gpuseg_msg_hello_reply *reply, int reason,
			char *text)
{
	const struct cq_source source = {.open = ask_for_file, .hurry = hurry_roll_thread, .arg = client};

	if ((reply->msg.version & 0xffff) >= QUEUE_FILE_SINCE_MINOR)
		return cq_attach_given(&client->queue, &source, &client->session->prepared_cycle, text);
	if (reason == -EROFS)
		snprintf(text, CQ_TEXT_BYTES,
			 "%.120s is read-only, and this daemon is too old for that; update it, or mount its directory "
			 "writable",
			 reply->queue_dir);
	return reason;
}

/* A container that has the socket alone, or the directory elsewhere: say what has to be mounted. */
static int fail_with_mount(int ret, const char *what, const char *path)
{
	if (ret == -ENOENT || ret == -ENOTDIR)
		return fail_with(
			NULL, ret,
			"%s %.120s: not there, but the daemon answers; in a container, mount the directory of the "
			"daemon, not its socket alone, at the same path",
			what, path);
	return fail_with(NULL, ret, "%s %.150s: %s", what, path, strerror(-ret));
}

static int map_status(struct gpuseg_client *client, const struct gpuseg_msg_hello_reply *reply)
{
	const struct gpuseg_status *status;
	struct stat st;
	void *p;
	int fd = open(reply->status_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fail_with_mount(-errno, "status page", reply->status_path);
	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*status)) {
		close(fd);
		return fail_with(NULL, -EPROTO, "status page %.150s is shorter than %zu bytes", reply->status_path,
				 sizeof(*status));
	}
	p = mmap(NULL, sizeof(*status), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return fail_with(NULL, -errno, "map status page: %s", strerror(errno));
	client->status = status = p;
	if (__atomic_load_n(&status->version, __ATOMIC_ACQUIRE) >> 16 != GPUSEG_ABI_MAJOR ||
	    status->magic != GPUSEG_STATUS_MAGIC)
		return fail_with(NULL, -EPROTONOSUPPORT,
				 "status page has magic %#x, version %#x; this library knows layout %d.%d",
				 status->magic, status->version, GPUSEG_ABI_MAJOR, GPUSEG_ABI_MINOR);
	if (status->incarnation != reply->incarnation)
		return fail_with(NULL, -EPROTO, "status page belongs to another run of the daemon; connect again");
	return 0;
}

/*
 * Does the daemon's pid mean the same here as there? The kernel translates the pid of the peer into our namespace, and
 * says 0 if it is not visible. The queue's lock contains the daemon's pid as the daemon knows it.
 */
static bool shares_pids(int socket, int32_t daemon_pid)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == daemon_pid;
}

static int attach(struct gpuseg_client *client, const char *name)
{
	struct gpuseg_msg_hello hello = {.msg.type = GPUSEG_MSG_HELLO};
	struct gpuseg_msg_hello_reply reply;
	char text[CQ_TEXT_BYTES];
	int descriptors[2];
	int ret;

	snprintf(hello.name, sizeof(hello.name), "%s", name);
	ret = client_exchange(client, &hello.msg, sizeof(hello), &reply.msg, sizeof(reply), descriptors);
	if (ret < 0) {
		close_descriptors(descriptors);
		if (reply.msg.status == ret && is_text(reply.text, sizeof(reply.text)))
			fail_with(NULL, ret, "%s", reply.text);
		else /* keep the message although the client is about to be freed: file it under "no client" */
			fail_with(NULL, ret, "%.250s", strdupa(gpuseg_last_message(client)));
		return ret;
	}
	if (descriptors[0] < 0 || descriptors[1] < 0 || !is_text(reply.queue_dir, sizeof(reply.queue_dir)) ||
	    !is_text(reply.status_path, sizeof(reply.status_path))) {
		close_descriptors(descriptors);
		return fail_with(NULL, -EPROTO, "the daemon's welcome lacks a descriptor or a path");
	}
	descriptor_take(&client->doorbell, descriptors[1]);
	descriptors[1] = -1;
	ret = map_session(client, descriptors[0], &reply);
	close_descriptors(descriptors);
	if (ret == 0)
		ret = map_status(client, &reply);
	if (ret < 0)
		return ret;
	ret = cq_attach(&client->queue, reply.queue_dir, &client->session->prepared_cycle, text);
	if (ret == -EROFS || ret == -EACCES)
		ret = attach_given(client, &reply, ret, text);
	if (ret < 0)
		return fail_with(NULL, ret, "%s", text);
	client->queue.foreign_pids = !shares_pids(client->socket.number, client->status->daemon_pid);
	client->managed = true;
	return 0;
}

static int init_mutexes(struct gpuseg_client *client)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	ret = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (!ret)
		ret = pthread_mutex_init(&client->append_mutex, &attr);
	if (!ret)
		ret = pthread_mutex_init(&client->request_mutex, &attr);
	if (!ret)
		ret = pthread_mutex_init(&client->chain_mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

/* Free what attach() made, but not the client. The roll thread has ended, or is the caller. */
static void detach(struct gpuseg_client *client)
{
	if (client->queue.meta)
		cq_detach(&client->queue);
	if (client->session)
		munmap(client->session, GPUSEG_SESSION_BYTES);
	if (client->status)
		munmap((void *)(uintptr_t)client->status, sizeof(*client->status));
	descriptor_close(&client->doorbell);
	client->session = NULL;
	client->status = NULL;
	descriptor_close(&client->socket);
	client->managed = false;
}

/* If root is NULL, the new client is the root. Returns NULL if memory or the mutex cannot be had; sets the message. */
static struct gpuseg_client *create(struct gpuseg_client *root, uint32_t *process)
{
	struct gpuseg_client *client =
		aligned_alloc(GPUSEG_CACHE_LINE, sizeof(*client)); /* a multiple of its alignment */
	int ret;

	if (!client) {
		fail_with(NULL, -ENOMEM, "out of memory");
		return NULL;
	}
	memset(client, 0, sizeof(*client));
	client->own_process = process;
	client->root = root ? root : client;
	client->newest = client;
	client->socket.number = client->doorbell.number = client->queue.dir.number = -1;
	ret = init_mutexes(client);
	if (ret < 0) {
		free(client);
		fail_with(NULL, ret, "priority-inheritance mutex: %s", strerror(-ret));
		return NULL;
	}
	return client;
}

static void destroy(struct gpuseg_client *client)
{
	detach(client);
	pthread_mutex_destroy(&client->append_mutex);
	pthread_mutex_destroy(&client->request_mutex);
	pthread_mutex_destroy(&client->chain_mutex);
	free(client->dir);
	free(client);
}

/* ---- after the loss of a daemon ---- */

/*
 * Connect to the daemon that is running now and register every task there. A task that it refuses keeps the lost
 * connection. After any other failure nothing has changed, and the caller tries again. Roll thread of the lost
 * connection.
 */
static int make_successor(struct gpuseg_client *lost)
{
	struct gpuseg_client *root = lost->root;
	struct gpuseg_client *next = create(root, (uint32_t *)(uintptr_t)root->own_process);
	int ret;

	if (!next)
		return -ENOMEM;
	ret = open_socket(next, root->dir, root->dir_named);
	if (ret == 0)
		ret = attach(next, root->name);
	if (ret < 0) {
		destroy(next);
		return ret;
	}
	pthread_mutex_lock(&root->request_mutex);
	for (struct gpuseg_task *task = root->tasks; task && ret == 0; task = task->next) {
		ret = task_register(next, task, &task->next_slot, &task->next_id);
		if (ret < 0) {
			task->next_slot = NULL;
			if (ret != -ENOTCONN && ret != -ETIMEDOUT && ret != -EPROTO) {
				if (!task->fails_if_lost)
					say("%s; task \"%s\" runs unmanaged", gpuseg_last_message(root), task->name);
				ret = 0;
			}
		}
	}
	if (ret == 0)
		ret = start_roll_thread(
			next); /* if it loses its daemon at once, it waits for the mutex until it is published */
	if (ret == 0) {
		pthread_mutex_lock(&root->chain_mutex);
		next->former = lost;
#if GPUSEG_PLANT_RACE == 3
		root->newest = next;
#else
		__atomic_store_n(&root->newest, next, __ATOMIC_RELEASE);
#endif
		pthread_mutex_unlock(&root->chain_mutex);
	}
	pthread_mutex_unlock(&root->request_mutex);
	if (ret < 0)
		destroy(next);
	return ret;
}

/* Wait. False: the application disconnects. */
static bool rest(struct gpuseg_client *client, int64_t ns)
{
	const int64_t until_ns = now_ns() + ns;

	while (!__atomic_load_n(&client->roll_stop, __ATOMIC_ACQUIRE)) {
		if (futex_wait(&client->roll_stop, 0, until_ns) == -ETIMEDOUT)
			return true;
	}
	return false;
}

/* Unmap the connection if no task uses it any more. */
static bool left_behind(struct gpuseg_client *client)
{
	bool left;

#if GPUSEG_PLANT_RACE == 1
	left = client->users == 0;
	if (left)
		detach(client);
#else
	pthread_mutex_lock(&client->root->request_mutex);
	left = client->users == 0;
	if (left)
		detach(client);
	pthread_mutex_unlock(&client->root->request_mutex);
#endif
	return left;
}

static void follow_lost(struct gpuseg_client *client)
{
	int64_t pause_ns = RECONNECT_FIRST_NS;

	while (make_successor(client) < 0) {
		if (!rest(client, pause_ns))
			return;
		pause_ns = 2 * pause_ns < RECONNECT_LAST_NS ? 2 * pause_ns : RECONNECT_LAST_NS;
	}
	if (!is_silent(client))
		say("another daemon schedules \"%s\" now", client->root->name);
	while (!left_behind(client) && rest(client, LOST_LOOK_NS))
		;
}

static void add_counters(struct gpuseg_counters *sum, const struct gpuseg_counters *counters)
{
	const uint64_t *from = &counters->records;
	uint64_t *to = &sum->records;

	for (size_t i = 0; i < (sizeof(*sum) - offsetof(struct gpuseg_counters, records)) / sizeof(*to); i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/*
 * A former connection whose roll thread has ended, so that nobody uses it, taken from the chain; or root, which stays.
 * NULL: there is none. One whose thread gpuseg_disconnect() stops is that call's to join and to free.
 */
static struct gpuseg_client *take_former(struct gpuseg_client *client)
{
	struct gpuseg_client *root = client->root, **link, *former;

	pthread_mutex_lock(&root->chain_mutex);
	for (link = &client->former; (former = *link) != NULL; link = &former->former) {
		if (!__atomic_load_n(&former->roll_stop, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&former->roll_exited, __ATOMIC_ACQUIRE) && former->roll_thread_runs)
			break;
	}
	if (former && former != root) {
		add_counters(&root->counters_before, &former->counters);
		*link = former->former;
	}
	pthread_mutex_unlock(&root->chain_mutex);
	return former;
}

/* Free the connections before this one that are left behind. Its roll thread only. */
static void free_former(struct gpuseg_client *client)
{
	struct gpuseg_client *former;

	while ((former = take_former(client)) != NULL) {
		pthread_join(former->roll_thread, NULL);
		former->roll_thread_runs = false;
		if (former != client->root) /* the application's own */
			destroy(former);
	}
}

static bool unmanaged_by_environment(void)
{
	const char *env = secure_getenv("GPUSEG_UNMANAGED");

	return env && strcmp(env, "1") == 0;
}

int client_destination(struct destination *to, const struct gpuseg_connect_attr *user_attr)
{
	struct gpuseg_connect_attr *attr = &to->attr;
	const char *chosen = secure_getenv("GPUSEG_DIR");
	int ret;

	*attr = (struct gpuseg_connect_attr)GPUSEG_CONNECT_ATTR_INIT;
	if (user_attr) {
		ret = copy_attr(attr, sizeof(*attr), sizeof(*attr), user_attr);
		if (ret < 0)
			return ret;
	}
	if (attr->flags & ~(uint32_t)FLAGS_KNOWN || attr->reserved)
		return fail_with(NULL, -EINVAL, "connect flags are %#x; known is %#x", attr->flags, FLAGS_KNOWN);
	if (!attr->name)
		attr->name = program_invocation_short_name;
	if (!*attr->name || strlen(attr->name) >= GPUSEG_NAME_BYTES)
		return fail_with(NULL, -EINVAL, "application name has %zu bytes; give 1 to %d", strlen(attr->name),
				 GPUSEG_NAME_BYTES - 1);
	to->dir_named = attr->dir || (chosen && *chosen);
	if (attr->dir) {
		if (strlen(attr->dir) >= sizeof(to->dir))
			return fail_with(NULL, -ENAMETOOLONG, "runtime directory has %zu bytes", strlen(attr->dir));
		strcpy(to->dir, attr->dir);
	} else {
		ret = gpuseg_runtime_dir(to->dir, sizeof(to->dir));
		if (ret < 0)
			return fail_with(NULL, ret,
					 "runtime directory: the path is too long; set a shorter GPUSEG_DIR");
	}
	return 0;
}

int client_prepare(void)
{
	if (own_process && !__atomic_load_n(own_process, __ATOMIC_ACQUIRE))
		in_forked_child(); /* the child of a bare clone(2), where no fork handler ran */
	pthread_once(&process_once, mark_process);
	return own_process ? 0 : fail_with(NULL, -ENOMEM, "out of memory");
}

int client_connect(const struct destination *to, struct gpuseg_client **out)
{
	const uint32_t flags = to->attr.flags;
	struct gpuseg_client *client;
	int ret;

	client = create(NULL, own_process);
	if (!client)
		return -ENOMEM;
	strcpy(client->name, to->attr.name);
	client->dir_named = to->dir_named;
	client->fails_if_lost = flags & GPUSEG_CONNECT_FAIL_IF_LOST;
	ret = open_socket(client, to->dir, client->dir_named);
	if (ret == 0) {
		ret = attach(client, client->name);
		/* before there is a roll thread: it detaches a client whose daemon is replaced at once */
		client->managed_at_connect = client->managed;
		if (ret == 0 && !(flags & GPUSEG_CONNECT_ONCE)) {
			client->dir = strdup(to->dir);
			ret = client->dir ? 0 : fail_with(NULL, -ENOMEM, "out of memory");
		}
		if (ret == 0) {
			ret = start_roll_thread(client);
			if (ret < 0)
				fail_with(NULL, ret, "roll thread: %s", strerror(-ret));
		}
	} else if (ret == -ENOTCONN && ((flags & GPUSEG_CONNECT_UNMANAGED_OK) || unmanaged_by_environment())) {
		ret = 0;
	}
	if (ret < 0) {
		destroy(client);
		return ret;
	}
#if GPUSEG_PLANT_RACE == 2
	client->managed_at_connect = client->managed;
#endif
	*out = client;
	return 0;
}

void client_forget_tasks(struct gpuseg_client *root, const struct gpuseg_client *handle)
{
	struct gpuseg_task **link = &root->tasks, *task;

	while ((task = *link) != NULL) {
		if (task->handle == handle) {
			*link = task->next;
			free(task);
		} else {
			link = &task->next;
		}
	}
}

/* In a child the mappings and threads of the parent do not exist, and a mutex may be in any state. */
static void disconnect_in_child(struct gpuseg_client *root)
{
	client_forget_tasks(root, root);
	for (struct gpuseg_client *client = root->newest, *former; client; client = former) {
		former = client->former;
		descriptor_close(&client->doorbell);
		descriptor_close(&client->socket);
		descriptor_close(&client->queue.dir);
		free(client->dir);
		free(client);
	}
}

/* The newest connection, which take_former() does not take any more. */
static struct gpuseg_client *claim_newest(struct gpuseg_client *root)
{
	struct gpuseg_client *newest;

	pthread_mutex_lock(&root->chain_mutex);
	newest = root->newest;
	__atomic_store_n(&newest->roll_stop, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&root->chain_mutex);
	return newest;
}

int client_disconnect(struct gpuseg_client *root)
{
	struct gpuseg_client *newest = NULL, *next;

	if (!__atomic_load_n(root->own_process, __ATOMIC_RELAXED)) {
		disconnect_in_child(root);
		return 0;
	}
	/* Stop the newest roll thread first, which may make another connection, even while it is being stopped. */
	while ((next = claim_newest(root)) != newest) {
		newest = next;
		stop_roll_thread(newest);
	}
	pthread_mutex_lock(&root->request_mutex);
	while (root->tasks)
		task_close_locked(root->tasks);
	pthread_mutex_unlock(&root->request_mutex);
	for (struct gpuseg_client *client = newest, *former; client; client = former) {
		former = client->former;
		stop_roll_thread(client);
		destroy(client);
	}
	return 0;
}

int gpuseg_is_managed(const gpuseg_client *client)
{
	struct gpuseg_client *root;
	int managed;

	if (!client || !client->managed_at_connect || !__atomic_load_n(client->own_process, __ATOMIC_RELAXED))
		return 0;
	root = client->root;
	pthread_mutex_lock(&root->chain_mutex);
	managed = !client_lost(root->newest);
	pthread_mutex_unlock(&root->chain_mutex);
	return managed;
}

int gpuseg_get_counters(const gpuseg_client *client, struct gpuseg_counters *out)
{
	/* In a forked child the mutex may be in any state, and nothing changes any more. */
	const bool changes = __atomic_load_n(client->own_process, __ATOMIC_RELAXED);
	struct gpuseg_client *root = client->root;
	struct gpuseg_counters copy;

	if (!out || out->size < offsetof(struct gpuseg_counters, drops) || out->size > sizeof(copy))
		return fail_with(client, -EINVAL, "counters.size is %zu; set it to sizeof(struct gpuseg_counters)",
				 out ? out->size : 0);
	if (changes)
		pthread_mutex_lock(&root->chain_mutex);
	copy = root->counters_before;
	for (const struct gpuseg_client *c = root->newest; c; c = c->former)
		add_counters(&copy, &c->counters);
	if (changes)
		pthread_mutex_unlock(&root->chain_mutex);
	copy.size = out->size;
	memcpy(out, &copy, out->size);
	return 0;
}
