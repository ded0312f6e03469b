/* One load client for both sides: threads with one keep-alive HTTP/1.1 connection each, over TCP or TLS.
 *
 *   load PORT tls|plain CONNECTIONS WARMUP_SECONDS SECONDS EXPECTED_STATUS GROUP FIRST FILE [RATE TIMES]
 *
 * FILE holds requests (http.h). GROUP requests in a row are one operation; operations go round in order. The number of
 * an operation, which no other one has, is from FIRST on. Operations that end between the lines `begin` and `end` on
 * stdout are counted; the last line is a JSON object with what was measured.
 *
 * With RATE, each operation is done once, at most that number of them per second, within SECONDS. The file TIMES then
 * has two doubles for each operation: when it began and when it ended, on the monotonic clock, or 0 for an operation
 * that failed.
 */
#include "http.h"

static size_t group;
static int expected;
static atomic_ullong next_operation;
static atomic_int measuring, stopping, broken, active;
static unsigned long long first_number;
static double rate, started, *times;
static pthread_barrier_t connected;
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[ERROR_TEXT];

typedef struct {
    Connection connection;
    uint32_t *latencies;
    size_t count, capacity;
    unsigned long long failures;
} Client;

static void note_error(int status, const char *body) {
    pthread_mutex_lock(&error_lock);
    if (first_error[0] == '\0') snprintf(first_error, sizeof first_error, "status %d: %.480s", status, body);
    pthread_mutex_unlock(&error_lock);
}

/* Waits until it is time for the operation. Returns 0 if there is no such operation. */
static int await_turn(unsigned long long operation) {
    if (times == NULL) return 1;
    if (operation >= request_count / group) return 0;
    double early = started + (double)operation / rate - now();
    if (early > 0) pause_for(early);
    return 1;
}

static void keep_latency(Client *client, double seconds) {
    if (client->count == client->capacity) {
        client->capacity = client->capacity ? client->capacity * 2 : 4096;
        client->latencies = checked(realloc(client->latencies, client->capacity * sizeof(uint32_t)));
    }
    client->latencies[client->count++] = (uint32_t)(seconds * 1e6);
}

static void serve(Client *client) {
    const char *problem = open_connection(&client->connection);
    if (problem != NULL) die(problem);
    pthread_barrier_wait(&connected);
    while (!stopping) {
        unsigned long long operation = atomic_fetch_add(&next_operation, 1);
        if (!await_turn(operation)) return;
        size_t first = (size_t)(operation * group % request_count), right = 0;
        double began = now();
        char body[ERROR_TEXT];
        for (size_t i = 0; i < group; i++) {
            int status = exchange(&client->connection, &requests[first + i], first_number + operation, body);
            if (status == 0) {
                if (!stopping) { note_error(0, "the connection broke, or ten seconds passed without an answer"); broken++; }
                return;
            }
            if (status != expected) note_error(status, body);
            right += status == expected;
        }
        if (times != NULL && right == group) {
            times[2 * operation] = began;
            times[2 * operation + 1] = now();
        }
        if (!measuring) continue;
        if (right == group) keep_latency(client, now() - began);
        else client->failures++;
    }
}

static void *run(void *argument) {
    serve(argument);
    active--;
    return NULL;
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(Client *all, int connections, double seconds, double cpu) {
    size_t count = 0, at = 0;
    unsigned long long failures = 0, received = 0;
    for (int i = 0; i < connections; i++) count += all[i].count;
    uint32_t *sorted = checked(malloc((count + 1) * sizeof(uint32_t)));
    for (int i = 0; i < connections; i++) {
        if (all[i].count) memcpy(sorted + at, all[i].latencies, all[i].count * sizeof(uint32_t));
        at += all[i].count;
        failures += all[i].failures;
        received += all[i].connection.received;
    }
    qsort(sorted, count, sizeof(uint32_t), by_value);
    sorted[count] = 0;
    printf("{\"count\": %zu, \"failures\": %llu, \"broken\": %d, \"seconds\": %.4f, \"cpu\": %.4f, \"received\": %llu, "
           "\"p50\": %.6f, \"p99\": %.6f, \"next\": %llu, \"error\": ",
           count, failures, (int)broken, seconds, cpu, received, sorted[count / 2] / 1e6, sorted[count * 99 / 100] / 1e6,
           first_number + next_operation);
    print_json_text(first_error);
    printf("}\n");
}

static void write_times(const char *path) {
    FILE *file = fopen(path, "wb");
    size_t count = 2 * (request_count / group);
    if (file == NULL || fwrite(times, sizeof(double), count, file) != count || fclose(file) != 0) die("cannot write TIMES");
}

int main(int argc, char **argv) {
    if (argc != 10 && argc != 12)
        die("usage: load PORT tls|plain CONNECTIONS WARMUP SECONDS STATUS GROUP FIRST FILE [RATE TIMES]");
    signal(SIGPIPE, SIG_IGN);
    port = atoi(argv[1]);
    use_tls = strcmp(argv[2], "tls") == 0;
    int connections = atoi(argv[3]);
    double warmup = atof(argv[4]), seconds = atof(argv[5]);
    expected = atoi(argv[6]);
    group = strtoul(argv[7], NULL, 10);
    first_number = strtoull(argv[8], NULL, 10);
    if (connections < 1 || group < 1) die("at least one connection and one request an operation");
    load_requests(argv[9]);
    if (request_count % group != 0) die("the requests do not make whole groups");
    if (argc == 12) {
        rate = atof(argv[10]);
        if (!(rate > 0)) die("RATE is a positive number");
        times = checked(calloc(2 * (request_count / group), sizeof *times));
    }
    if (use_tls) load_tls();
    Client *all = checked(calloc((size_t)connections, sizeof *all));
    pthread_t *threads = checked(calloc((size_t)connections, sizeof *threads));
    pthread_barrier_init(&connected, NULL, (unsigned)connections + 1);
    active = connections;
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, run, &all[i]) != 0) die("no more threads");
    started = now() + 0.05; /* the threads read it after the barrier */
    pthread_barrier_wait(&connected);
    pause_for(warmup);
    printf("begin\n");
    fflush(stdout);
    double cpu = cpu_seconds(), began = now();
    measuring = 1;
    /* A paced run ends with its last operation, or when the time is over. */
    while (times != NULL && active > 0 && now() - began < seconds) pause_for(0.01);
    if (times == NULL) pause_for(seconds);
    measuring = 0;
    double took = now() - began;
    cpu = cpu_seconds() - cpu;
    printf("end\n");
    fflush(stdout);
    stopping = 1;
    for (int i = 0; i < connections; i++) pthread_join(threads[i], NULL);
    if (times != NULL) write_times(argv[11]);
    report(all, connections, took, cpu);
    return 0;
}
