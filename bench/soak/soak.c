/* The load of a soak test: submits, polls and deletes jobs at given rates, through failures of the gateway.
 *
 *   soak PORT SUBMITTERS SUBMIT_RATE POLLERS POLL_RATE LIVE FILE
 *
 * FILE holds requests (http.h): that which deletes a job, that which polls one, and those which submit one, in turn. Their
 * number is that of the job, from 0 on. A submission or deletion is repeated until it is answered 200, 201 or 202, on new
 * connections if necessary, so all jobs with a number below that of the next one are accepted. A job is deleted when LIVE
 * later ones were submitted, and submissions wait while twice as many are not deleted. A poll asks for a random accepted
 * job, live or deleted lately, and is not repeated.
 *
 * Each second prints the numbers of accepted and deleted jobs and of answered polls. When standard input ends, polls and
 * submissions stop, and the remaining jobs are deleted. The last line is a JSON object with what was counted.
 */
#include "../measuring/http.h"
#include <poll.h>

#define PATIENCE 300.0  /* seconds for which a request is repeated: a gateway that is killed often is away for long */
#define RETRY 0.1       /* seconds between two attempts */
#define FORGIVEN 1.0    /* seconds behind its rate that a load makes up for; more would delay the next requests */
#define STATUSES 600
#define SLOTS 100000    /* of 0.1 ms each: answers take at most 10 s */
#define MOST_JOBS (1ULL << 26)

typedef struct {
    const char *name;
    double period, due;
    pthread_mutex_t lock;
    atomic_ullong done, retries, broken, refused, statuses[STATUSES], slots[SLOTS];
} Load;

static Load submissions = {.name = "submit", .lock = PTHREAD_MUTEX_INITIALIZER};
static Load polls = {.name = "poll", .lock = PTHREAD_MUTEX_INITIALIZER};
static Load deletions = {.name = "delete", .lock = PTHREAD_MUTEX_INITIALIZER};
static const Request *deletion, *status_poll;
static atomic_uchar *accepted;
static atomic_ullong next_job, next_deletion, unanswered;
static atomic_int ending, submitting;
static unsigned long long live;
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[ERROR_TEXT];

static void note_error(const char *name, unsigned long long job, int status, const char *body) {
    pthread_mutex_lock(&error_lock);
    if (first_error[0] == '\0')
        snprintf(first_error, sizeof first_error, "%s job %llu: status %d: %.450s", name, job, status, body);
    pthread_mutex_unlock(&error_lock);
}

/* Waits until the rate of the load allows another request. Returns 0 if the load ends. */
static int take_turn(Load *load) {
    pthread_mutex_lock(&load->lock);
    double at = load->due, earliest = now() - FORGIVEN, early;
    if (at < earliest) at = earliest;
    load->due = at + load->period;
    pthread_mutex_unlock(&load->lock);
    while (!ending && (early = at - now()) > 0) pause_for(early < 0.1 ? early : 0.1);
    return !ending;
}

static void keep_latency(Load *load, double seconds) {
    size_t slot = (size_t)(seconds * 1e4);
    load->slots[slot < SLOTS ? slot : SLOTS - 1]++;
    load->done++;
}

/* Sends the request once. Returns the status of the answer, or 0 without one. */
static int attempt(Load *load, Connection *connection, const Request *request, unsigned long long job, char *body) {
    *body = '\0';
    if (connection->socket < 0 && open_connection(connection) != NULL) {
        load->refused++;
        return 0;
    }
    int status = exchange(connection, request, job, body);
    if (status == 0) {
        load->broken++;
        close_connection(connection);
    } else {
        load->statuses[status < STATUSES ? status : 0]++;
    }
    return status;
}

static int is_done(int status) { return status >= 200 && status <= 202; }

/* Whether no repetition can succeed. A conflict may be that with the earlier attempt, whose connection broke, and the
 * gateway learns of a new namespace after a while. All other requests are about accepted jobs, which must be found. */
static int is_final(const Load *load, int status) {
    if (status == 404) return load != &submissions;
    return status >= 400 && status < 500 && status != 408 && status != 409 && status != 429;
}

/* Repeats the request until it has succeeded. Returns 0 if it never will. */
static int insist(Load *load, Connection *connection, const Request *request, unsigned long long job) {
    char body[ERROR_TEXT];
    double began = now();
    for (;;) {
        double sent = now();
        int status = attempt(load, connection, request, job, body);
        if (is_done(status)) {
            keep_latency(load, now() - sent);
            return 1;
        }
        if (is_final(load, status) || now() - began > PATIENCE) {
            note_error(load->name, job, status, body);
            unanswered++;
            return 0;
        }
        load->retries++;
        pause_for(RETRY);
    }
}

static void *submit(void *unused) {
    Connection connection = {.socket = -1};
    while (take_turn(&submissions)) {
        while (!ending && next_job >= deletions.done + 2 * live) pause_for(0.01);
        if (ending) break;
        unsigned long long job = atomic_fetch_add(&next_job, 1);
        if (job >= MOST_JOBS) die("too many jobs");
        if (insist(&submissions, &connection, &requests[2 + job % (request_count - 2)], job)) accepted[job] = 1;
    }
    close_connection(&connection);
    submitting--;
    return unused;
}

static void *delete_jobs(void *unused) {
    Connection connection = {.socket = -1};
    for (;;) {
        unsigned long long job = atomic_fetch_add(&next_deletion, 1);
        while (next_job <= job + live && submitting) pause_for(0.01);
        if (job >= next_job) break;
        while (!accepted[job] && submitting) pause_for(0.01);
        if (accepted[job]) insist(&deletions, &connection, deletion, job);
    }
    close_connection(&connection);
    return unused;
}

/* Returns a random accepted job that is live or was deleted lately, or MOST_JOBS if there is none yet. */
static unsigned long long choose(unsigned *seed) {
    unsigned long long end = next_job, first = end > 2 * live ? end - 2 * live : 0;
    for (int i = 0; i < 8 && end > first; i++) {
        unsigned long long job = first + (unsigned long long)rand_r(seed) % (end - first);
        if (accepted[job]) return job;
    }
    return MOST_JOBS;
}

static void *poll_jobs(void *number) {
    Connection connection = {.socket = -1};
    unsigned seed = (unsigned)(uintptr_t)number;
    char body[ERROR_TEXT];
    while (take_turn(&polls)) {
        unsigned long long job = choose(&seed);
        if (job == MOST_JOBS) continue;
        double sent = now();
        int status = attempt(&polls, &connection, status_poll, job, body);
        if (is_done(status)) keep_latency(&polls, now() - sent);
        else if (is_final(&polls, status)) note_error(polls.name, job, status, body);
    }
    close_connection(&connection);
    return NULL;
}

static double percentile(Load *load, double share) {
    unsigned long long seen = 0, wanted = (unsigned long long)((double)load->done * share);
    size_t slot = 0;
    while (slot < SLOTS - 1 && (seen += load->slots[slot]) <= wanted) slot++;
    return (double)slot / 1e4;
}

static void report_load(Load *load) {
    printf("\"%s\": {\"done\": %llu, \"retries\": %llu, \"broken\": %llu, \"refused\": %llu, \"p50\": %.4f, \"p99\": %.4f, "
           "\"codes\": {", load->name, load->done, load->retries, load->broken, load->refused, percentile(load, 0.5),
           percentile(load, 0.99));
    const char *comma = "";
    for (int status = 0; status < STATUSES; status++) {
        if (load->statuses[status] == 0) continue;
        printf("%s\"%d\": %llu", comma, status, load->statuses[status]);
        comma = ", ";
    }
    printf("}}, ");
}

static void report(double seconds) {
    printf("{");
    report_load(&submissions);
    report_load(&polls);
    report_load(&deletions);
    printf("\"submitted\": %llu, \"unanswered\": %llu, \"seconds\": %.1f, \"cpu\": %.2f, \"error\": ", next_job, unanswered,
           seconds, cpu_seconds());
    print_json_text(first_error);
    printf("}\n");
}

/* Prints the progress each second until standard input ends. */
static void follow(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char ignored[64];
    for (;;) {
        if (poll(&input, 1, 1000) > 0 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0) return;
        printf("%llu %llu %llu\n", submissions.done, deletions.done, polls.done);
        fflush(stdout);
    }
}

static void start(pthread_t *thread, void *(*work)(void *), int number) {
    if (pthread_create(thread, NULL, work, (void *)(uintptr_t)number) != 0) die("no more threads");
}

int main(int argc, char **argv) {
    if (argc != 8) die("usage: soak PORT SUBMITTERS SUBMIT_RATE POLLERS POLL_RATE LIVE FILE");
    signal(SIGPIPE, SIG_IGN);
    port = atoi(argv[1]);
    int submitters = atoi(argv[2]), pollers = atoi(argv[4]);
    submissions.period = 1 / atof(argv[3]);
    polls.period = 1 / atof(argv[5]);
    live = strtoull(argv[6], NULL, 10);
    load_requests(argv[7]);
    if (submitters < 1 || pollers < 1 || request_count < 3) die("at least one client of each sort, and three requests");
    deletion = &requests[0];
    status_poll = &requests[1];
    accepted = checked(calloc(MOST_JOBS, 1));
    pthread_t *threads = checked(calloc((size_t)(2 * submitters + pollers), sizeof *threads));
    double began = submissions.due = polls.due = now();
    submitting = submitters;
    for (int i = 0; i < submitters; i++) {
        start(&threads[i], submit, i);
        start(&threads[submitters + i], delete_jobs, i);
    }
    for (int i = 0; i < pollers; i++) start(&threads[2 * submitters + i], poll_jobs, i);
    follow();
    ending = 1;
    double seconds = now() - began;
    for (int i = 0; i < 2 * submitters + pollers; i++) pthread_join(threads[i], NULL);
    report(seconds);
    return 0;
}
