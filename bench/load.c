/* One load client for both sides: threads with one keep-alive HTTP/1.1 connection each, over TCP or TLS.
 *
 *   load PORT tls|plain CONNECTIONS WARMUP_SECONDS SECONDS EXPECTED_STATUS GROUP FIRST FILE [RATE TIMES]
 *
 * FILE holds requests, each as its length in decimal, a newline and the bytes. GROUP requests in a row are one
 * operation; operations go round in order. Eight hash signs in a request become a number that no other operation
 * has, from FIRST on, so that lengths never change. Operations that end between the lines `begin` and `end` on
 * stdout are counted; the last line is a JSON object with what was measured.
 *
 * With RATE, each operation is done once, at most that number of them per second, within SECONDS. The file TIMES then has two doubles for each
 * operation: when it began and when it ended, on the monotonic clock, or 0 for an operation that failed.
 *
 * TLS comes from the system's libssl, opened by name, so that no headers are needed to compile this. Certificates
 * are not checked: it connects to 127.0.0.1 and nothing else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define TIMEOUT_SECONDS 10
#define ERROR_TEXT 600

typedef struct { char *bytes; size_t length; char *number; } Request;

static struct {
    void *(*method)(void), *(*context)(void *), *(*make)(void *);
    int (*set_fd)(void *, int), (*connect)(void *), (*read)(void *, void *, int), (*write)(void *, const void *, int);
} tls;

static Request *requests;
static size_t request_count, group;
static int port, expected, use_tls;
static void *tls_context;
static atomic_ullong next_operation;
static atomic_int measuring, stopping, broken, active;
static unsigned long long first_number;
static double rate, started, *times;
static pthread_barrier_t connected;
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[ERROR_TEXT];

typedef struct {
    int socket;
    void *ssl;
    char *buffer;
    size_t start, end;
    uint32_t *latencies;
    size_t count, capacity;
    unsigned long long failures, received;
} Connection;

static void die(const char *what) {
    fprintf(stderr, "load: %s\n", what);
    exit(2);
}

static void *checked(void *pointer) {
    if (pointer == NULL) die("out of memory");
    return pointer;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) die("this libssl lacks a function");
    return found;
}

static void load_tls(void) {
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    if (library == NULL) die("there is no libssl.so.3: install OpenSSL 3");
    *(void **)&tls.method = symbol(library, "TLS_client_method");
    *(void **)&tls.context = symbol(library, "SSL_CTX_new");
    *(void **)&tls.make = symbol(library, "SSL_new");
    *(void **)&tls.set_fd = symbol(library, "SSL_set_fd");
    *(void **)&tls.connect = symbol(library, "SSL_connect");
    *(void **)&tls.read = symbol(library, "SSL_read");
    *(void **)&tls.write = symbol(library, "SSL_write");
    tls_context = checked(tls.context(tls.method()));
}

static void load_requests(const char *path) {
    FILE *file = fopen(path, "rb");
    size_t length;
    if (file == NULL) die("the file of requests cannot be read");
    while (fscanf(file, "%zu", &length) == 1) {
        requests = checked(realloc(requests, (request_count + 1) * sizeof *requests));
        Request *request = &requests[request_count++];
        request->bytes = checked(calloc(1, length + 1));
        request->length = length;
        if (fgetc(file) != '\n' || fread(request->bytes, 1, length, file) != length) die("the file is cut off");
        request->number = strstr(request->bytes, "########");
    }
    fclose(file);
    if (request_count == 0 || request_count % group != 0) die("the requests do not make whole groups");
}

static void open_connection(Connection *connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
    int yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(connection->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(connection->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0) die("nobody listens there");
    if (!use_tls) return;
    connection->ssl = checked(tls.make(tls_context));
    tls.set_fd(connection->ssl, connection->socket);
    if (tls.connect(connection->ssl) != 1) die("no TLS there");
}

static int send_all(Connection *connection, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = use_tls ? tls.write(connection->ssl, bytes, (int)length)
                               : send(connection->socket, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) return 0;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 1;
}

static int receive_more(Connection *connection) {
    if (connection->start == connection->end) connection->start = connection->end = 0;
    if (connection->start > 0 && connection->end == BUFFER) {
        memmove(connection->buffer, connection->buffer + connection->start, connection->end - connection->start);
        connection->end -= connection->start;
        connection->start = 0;
    }
    int room = (int)(BUFFER - connection->end);
    if (room == 0) return 0;
    ssize_t got = use_tls ? tls.read(connection->ssl, connection->buffer + connection->end, room)
                          : recv(connection->socket, connection->buffer + connection->end, (size_t)room, 0);
    if (got <= 0) return 0;
    connection->end += (size_t)got;
    connection->received += (unsigned long long)got;
    return 1;
}

/* Returns the next line without its CRLF, in the buffer until the next read; NULL if the peer has closed. */
static char *read_line(Connection *connection) {
    for (;;) {
        char *start = connection->buffer + connection->start;
        char *end = memchr(start, '\n', connection->end - connection->start);
        if (end != NULL) {
            connection->start += (size_t)(end - start) + 1;
            *(end > start && end[-1] == '\r' ? end - 1 : end) = '\0';
            return start;
        }
        if (!receive_more(connection)) return NULL;
    }
}

static int skip(Connection *connection, size_t length, char *kept) {
    size_t keeping = ERROR_TEXT - 100;
    while (length > 0) {
        size_t here = connection->end - connection->start;
        if (here == 0 && !receive_more(connection)) return 0;
        here = connection->end - connection->start;
        if (here > length) here = length;
        if (kept != NULL) {
            size_t part = here < keeping ? here : keeping;
            memcpy(kept, connection->buffer + connection->start, part);
            kept += part;
            keeping -= part;
            *kept = '\0';
        }
        connection->start += here;
        length -= here;
    }
    return 1;
}

static int skip_chunks(Connection *connection) {
    for (;;) {
        char *line = read_line(connection);
        if (line == NULL) return 0;
        size_t length = strtoul(line, NULL, 16);
        if (length > 0 && !skip(connection, length, NULL)) return 0;
        if (read_line(connection) == NULL) return 0;
        if (length == 0) return 1;
    }
}

static void note_error(int status, const char *body) {
    pthread_mutex_lock(&error_lock);
    if (first_error[0] == '\0') snprintf(first_error, sizeof first_error, "status %d: %.480s", status, body);
    pthread_mutex_unlock(&error_lock);
}

static void pause_for(double seconds) {
    struct timespec span = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

/* Waits until it is time for the operation. Returns 0 if there is no such operation. */
static int await_turn(unsigned long long operation) {
    if (times == NULL) return 1;
    if (operation >= request_count / group) return 0;
    double early = started + (double)operation / rate - now();
    if (early > 0) pause_for(early);
    return 1;
}

/* Returns the status of one exchange, or 0 if the connection can no longer be used. */
static int exchange(Connection *connection, const Request *request, unsigned long long operation) {
    char *line, number[32];
    size_t length = 0, chunked = 0;
    if (request->number == NULL) {
        if (!send_all(connection, request->bytes, request->length)) return 0;
    } else {
        char copy[request->length];
        memcpy(copy, request->bytes, request->length);
        snprintf(number, sizeof number, "%08llu", (first_number + operation) % 100000000ULL);
        for (char *at = copy; (at = memmem(at, (size_t)(copy + request->length - at), "########", 8)) != NULL; at += 8)
            memcpy(at, number, 8);
        if (!send_all(connection, copy, request->length)) return 0;
    }
    if ((line = read_line(connection)) == NULL || strlen(line) < 12) return 0;
    int status = atoi(line + 9);
    while ((line = read_line(connection)) != NULL && *line != '\0') {
        if (strncasecmp(line, "content-length:", 15) == 0) length = strtoul(line + 15, NULL, 10);
        if (strncasecmp(line, "transfer-encoding: chunked", 26) == 0) chunked = 1;
    }
    if (line == NULL) return 0;
    if (status == 304 || status == 204) return status;
    char body[ERROR_TEXT] = "";
    if (chunked ? !skip_chunks(connection) : !skip(connection, length, status == expected ? NULL : body)) return 0;
    if (status != expected) note_error(status, body);
    return status;
}

static void keep_latency(Connection *connection, double seconds) {
    if (connection->count == connection->capacity) {
        connection->capacity = connection->capacity ? connection->capacity * 2 : 4096;
        connection->latencies = checked(realloc(connection->latencies, connection->capacity * sizeof(uint32_t)));
    }
    connection->latencies[connection->count++] = (uint32_t)(seconds * 1e6);
}

static void serve(Connection *connection) {
    connection->buffer = checked(malloc(BUFFER));
    open_connection(connection);
    pthread_barrier_wait(&connected);
    while (!stopping) {
        unsigned long long operation = atomic_fetch_add(&next_operation, 1);
        if (!await_turn(operation)) return;
        size_t first = (size_t)(operation * group % request_count), right = 0;
        double began = now();
        for (size_t i = 0; i < group; i++) {
            int status = exchange(connection, &requests[first + i], operation);
            if (status == 0) {
                if (!stopping) { note_error(0, "the connection broke, or ten seconds passed without an answer"); broken++; }
                return;
            }
            right += status == expected;
        }
        if (times != NULL && right == group) {
            times[2 * operation] = began;
            times[2 * operation + 1] = now();
        }
        if (!measuring) continue;
        if (right == group) keep_latency(connection, now() - began);
        else connection->failures++;
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

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_json_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar((unsigned char)*text < 32 ? ' ' : *text);
    }
    putchar('"');
}

static void report(Connection *all, int connections, double seconds, double cpu) {
    size_t count = 0, at = 0;
    unsigned long long failures = 0, received = 0;
    for (int i = 0; i < connections; i++) count += all[i].count;
    uint32_t *sorted = checked(malloc((count + 1) * sizeof(uint32_t)));
    for (int i = 0; i < connections; i++) {
        if (all[i].count) memcpy(sorted + at, all[i].latencies, all[i].count * sizeof(uint32_t));
        at += all[i].count;
        failures += all[i].failures;
        received += all[i].received;
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
    if (argc == 12) {
        rate = atof(argv[10]);
        if (!(rate > 0)) die("RATE is a positive number");
        times = checked(calloc(2 * (request_count / group), sizeof *times));
    }
    if (use_tls) load_tls();
    Connection *all = checked(calloc((size_t)connections, sizeof *all));
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
