/* HTTP/1.1 on loopback for the load clients: blocking keep-alive connections, over TCP or TLS, and files of requests.
 *
 * A file of requests holds each as its length in decimal, a newline and the bytes. Eight hash signs in a request become
 * a number when it is sent, so that lengths never change.
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

/* `socket` is -1 while there is no connection. */
typedef struct {
    int socket;
    void *ssl;
    char *buffer;
    size_t start, end;
    unsigned long long received;
} Connection;

static struct {
    void *(*method)(void), *(*context)(void *), *(*make)(void *);
    int (*set_fd)(void *, int), (*connect)(void *), (*read)(void *, void *, int), (*write)(void *, const void *, int);
    void (*free)(void *);
} tls;

static Request *requests;
static size_t request_count;
static int port, use_tls;
static void *tls_context;

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

__attribute__((unused)) static void load_tls(void) {
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    if (library == NULL) die("there is no libssl.so.3: install OpenSSL 3");
    *(void **)&tls.method = symbol(library, "TLS_client_method");
    *(void **)&tls.context = symbol(library, "SSL_CTX_new");
    *(void **)&tls.make = symbol(library, "SSL_new");
    *(void **)&tls.set_fd = symbol(library, "SSL_set_fd");
    *(void **)&tls.connect = symbol(library, "SSL_connect");
    *(void **)&tls.read = symbol(library, "SSL_read");
    *(void **)&tls.write = symbol(library, "SSL_write");
    *(void **)&tls.free = symbol(library, "SSL_free");
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
    if (request_count == 0) die("the file has no requests");
}

static void close_connection(Connection *connection) {
    if (connection->ssl != NULL) tls.free(connection->ssl);
    if (connection->socket >= 0) close(connection->socket);
    connection->ssl = NULL;
    connection->socket = -1;
}

/* Returns NULL, or why there is no connection. */
static const char *open_connection(Connection *connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
    int yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connection->buffer == NULL) connection->buffer = checked(malloc(BUFFER));
    connection->start = connection->end = 0;
    connection->ssl = NULL;
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket < 0) return "no socket is free";
    setsockopt(connection->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(connection->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const char *problem = NULL;
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0) problem = "nobody listens there";
    if (problem == NULL && use_tls) {
        connection->ssl = checked(tls.make(tls_context));
        tls.set_fd(connection->ssl, connection->socket);
        if (tls.connect(connection->ssl) != 1) problem = "no TLS there";
    }
    if (problem != NULL) close_connection(connection);
    return problem;
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

/* Reads so many bytes of a body, and keeps its beginning as text in `kept`. */
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

static void pause_for(double seconds) {
    struct timespec span = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

/* Sends the request with this number. Returns the status of the answer and the beginning of its body as text, or 0 if
 * the connection can no longer be used. */
static int exchange(Connection *connection, const Request *request, unsigned long long number, char *body) {
    char *line, digits[32];
    size_t length = 0, chunked = 0;
    *body = '\0';
    if (request->number == NULL) {
        if (!send_all(connection, request->bytes, request->length)) return 0;
    } else {
        char copy[request->length];
        memcpy(copy, request->bytes, request->length);
        snprintf(digits, sizeof digits, "%08llu", number % 100000000ULL);
        for (char *at = copy; (at = memmem(at, (size_t)(copy + request->length - at), "########", 8)) != NULL; at += 8)
            memcpy(at, digits, 8);
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
    if (chunked ? !skip_chunks(connection) : !skip(connection, length, body)) return 0;
    return status;
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
