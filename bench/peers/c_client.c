/* The real C client at native speed: c_client ROLE DIRECTORY name=value..., one process per role.
 *
 * The roles pub, sub, ping and pong have the same loops and messages (record.rs) as in bench/native. If you change one
 * of the two programs, change the other too. The pyaeron wheel comes without headers, so the functions of its C library
 * are declared here. The library also needs the addresses of thirteen Python objects, but does not use them without an
 * interpreter.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct context context_t;
typedef struct client client_t;
typedef struct driver driver_t;
typedef struct driver_context driver_context_t;
typedef struct add add_t;
typedef struct publication publication_t;
typedef struct subscription subscription_t;
typedef struct assembler assembler_t;
typedef void (*handler_t)(void *clientd, const uint8_t *buffer, size_t length, void *header);
typedef struct { uint8_t *frame; uint8_t *data; size_t length; } claim_t;

int aeron_context_init(context_t **);
int aeron_context_set_dir(context_t *, const char *);
int aeron_init(client_t **, context_t *);
int aeron_start(client_t *);
int aeron_close(client_t *);
int aeron_context_close(context_t *);
const char *aeron_errmsg(void);
int aeron_async_add_subscription(add_t **, client_t *, const char *, int32_t, void *, void *, void *, void *);
int aeron_async_add_subscription_poll(subscription_t **, add_t *);
int aeron_async_add_exclusive_publication(add_t **, client_t *, const char *, int32_t);
int aeron_async_add_exclusive_publication_poll(publication_t **, add_t *);
int aeron_async_add_publication(add_t **, client_t *, const char *, int32_t);
int aeron_async_add_publication_poll(publication_t **, add_t *);
bool aeron_exclusive_publication_is_connected(publication_t *);
int64_t aeron_exclusive_publication_offer(publication_t *, const uint8_t *, size_t, void *, void *);
int64_t aeron_exclusive_publication_try_claim(publication_t *, size_t, claim_t *);
bool aeron_publication_is_connected(publication_t *);
int64_t aeron_publication_offer(publication_t *, const uint8_t *, size_t, void *, void *);
int64_t aeron_publication_try_claim(publication_t *, size_t, claim_t *);
int aeron_buffer_claim_commit(claim_t *);
int aeron_subscription_poll(subscription_t *, handler_t, void *, size_t);
bool aeron_subscription_is_connected(subscription_t *);
int aeron_fragment_assembler_create(assembler_t **, handler_t, void *);
void aeron_fragment_assembler_handler(void *, const uint8_t *, size_t, void *);
int aeron_context_set_use_conductor_agent_invoker(context_t *, bool);
int aeron_main_do_work(client_t *);
int aeron_driver_context_init(driver_context_t **);
int aeron_driver_context_set_dir(driver_context_t *, const char *);
int aeron_driver_context_close(driver_context_t *);
int aeron_driver_init(driver_t **, driver_context_t *);
int aeron_driver_start(driver_t *, bool);
int aeron_driver_main_do_work(driver_t *);
int aeron_driver_close(driver_t *);

#define STAND_IN(name) uint64_t name[64]
STAND_IN(PyByteArray_Type); STAND_IN(PyBytes_Type); STAND_IN(PyExc_OverflowError); STAND_IN(PyExc_TypeError);
STAND_IN(PyExc_ValueError); STAND_IN(PyFloat_Type); STAND_IN(PyMemoryView_Type); STAND_IN(PyType_GenericNew);
STAND_IN(_PyByteArray_empty_string); STAND_IN(_Py_FalseStruct); STAND_IN(_Py_NoneStruct);
STAND_IN(_Py_NotImplementedStruct); STAND_IN(_Py_TrueStruct);

enum { STREAM_ID = 1001, PING_STREAM_ID, PONG_STREAM_ID, CLOCK_INTERVAL = 1024, MAX_COUNT = 50000000, END = -1 };

static struct
{
    const char *channel, *reply, *how;
    size_t length, limit;
    double seconds, warmup;
    bool assemble, concurrent, invokes;
} arguments = { "aeron:ipc", NULL, "offer", 32, 256, 2.0, 0.0, false, false, false };

/* The embedded driver, which the loops of this process run. NULL if the driver runs in another process. */
static driver_t *driver;
static driver_context_t *driver_context;

typedef struct { int64_t next, received, sum; uint64_t faults; bool ended; } check_t;

static void fail(const char *what)
{
    fprintf(stderr, "c_client: %s: %s\n", what, aeron_errmsg());
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int64_t value_of(int64_t number)
{
    return (int64_t)((uint64_t)number * 7) ^ 0x55;
}

static inline void write_record(int64_t number, uint8_t *message)
{
    const int64_t value = value_of(number);
    memcpy(message, &number, 8);
    memcpy(message + 8, &value, 8);
}

static void take(void *clientd, const uint8_t *buffer, size_t length, void *header)
{
    check_t *check = clientd;
    int64_t number, value;
    memcpy(&number, buffer, 8);
    memcpy(&value, buffer + 8, 8);
    if (END == number)
    {
        check->ended = true;
        return;
    }
    check->faults += number != check->next;
    check->next++;
    check->received++;
    check->sum = (int64_t)((uint64_t)check->sum + (uint64_t)value);
}

/* Pauses after an iteration without work, or runs the embedded driver and the client. */
static inline void spend_turn(client_t *client)
{
    if (NULL == driver)
    {
        __builtin_ia32_pause();
    }
    else
    {
        aeron_driver_main_do_work(driver);
        aeron_main_do_work(client);
    }
}

static void await_turn(client_t *client)
{
    if (NULL == driver) usleep(100);
    else spend_turn(client);
}

static subscription_t *add_subscription(client_t *client, const char *channel, int32_t stream_id)
{
    add_t *add;
    subscription_t *subscription = NULL;
    if (aeron_async_add_subscription(&add, client, channel, stream_id, NULL, NULL, NULL, NULL) < 0) fail("add");
    for (int done = 0; 0 == done; await_turn(client))
    {
        if ((done = aeron_async_add_subscription_poll(&subscription, add)) < 0) fail("add subscription");
    }
    return subscription;
}

static publication_t *add_publication(client_t *client, const char *channel, int32_t stream_id)
{
    add_t *add;
    publication_t *publication = NULL;
    const int sent = arguments.concurrent ?
        aeron_async_add_publication(&add, client, channel, stream_id) :
        aeron_async_add_exclusive_publication(&add, client, channel, stream_id);
    if (sent < 0) fail("add");
    for (int done = 0; 0 == done; await_turn(client))
    {
        done = arguments.concurrent ? aeron_async_add_publication_poll(&publication, add) :
            aeron_async_add_exclusive_publication_poll(&publication, add);
        if (done < 0) fail("add publication");
    }
    return publication;
}

static bool is_connected(publication_t *publication)
{
    return arguments.concurrent ?
        aeron_publication_is_connected(publication) : aeron_exclusive_publication_is_connected(publication);
}

/* Each way of sending has its own loop, as an application would write it. */
#define SEND_WHILE_TIME_LASTS(SEND)                                                                                    \
    for (const double deadline = now() + arguments.seconds; number % CLOCK_INTERVAL != 0 || now() < deadline; number++) \
    {                                                                                                                  \
        write_record(number, message);                                                                                 \
        SEND;                                                                                                          \
    }

#define OFFER(FUNCTION) while (FUNCTION(publication, message, arguments.length, NULL, NULL) < 0) { sched_yield(); }
#define CLAIM(FUNCTION)                                                                                                \
    while (FUNCTION(publication, arguments.length, &claim) < 0) { sched_yield(); }                                     \
    memcpy(claim.data, message, arguments.length);                                                                     \
    aeron_buffer_claim_commit(&claim)

static int64_t send_all(publication_t *publication, uint8_t *message)
{
    int64_t number = 0;
    claim_t claim;
    const bool claims = 0 == strcmp(arguments.how, "claim");
    if (arguments.concurrent && claims) { SEND_WHILE_TIME_LASTS(CLAIM(aeron_publication_try_claim)) }
    else if (arguments.concurrent) { SEND_WHILE_TIME_LASTS(OFFER(aeron_publication_offer)) }
    else if (claims) { SEND_WHILE_TIME_LASTS(CLAIM(aeron_exclusive_publication_try_claim)) }
    else { SEND_WHILE_TIME_LASTS(OFFER(aeron_exclusive_publication_offer)) }
    return number;
}

static int64_t offer(publication_t *publication, const uint8_t *message)
{
    return arguments.concurrent ? aeron_publication_offer(publication, message, arguments.length, NULL, NULL) :
        aeron_exclusive_publication_offer(publication, message, arguments.length, NULL, NULL);
}

static void publish(client_t *client)
{
    publication_t *publication = add_publication(client, arguments.channel, STREAM_ID);
    uint8_t *message = calloc(1, arguments.length);
    while (!is_connected(publication)) sched_yield();
    const int64_t sent = send_all(publication, message);
    write_record(END, message);
    while (offer(publication, message) < 0) sched_yield();
    uint64_t sum = 0;
    for (int64_t number = 0; number < sent; number++) sum += (uint64_t)value_of(number);
    printf("{\"sent\": %" PRId64 ", \"sum\": %" PRId64 "}\n", sent, (int64_t)sum);
    fflush(stdout);
    while (is_connected(publication)) usleep(1000);
}

static void subscribe(client_t *client)
{
    subscription_t *subscription = add_subscription(client, arguments.channel, STREAM_ID);
    check_t check = { 0 };
    handler_t handler = take;
    void *clientd = &check;
    if (arguments.assemble)
    {
        assembler_t *assembler;
        if (aeron_fragment_assembler_create(&assembler, take, &check) < 0) fail("assembler");
        handler = aeron_fragment_assembler_handler;
        clientd = assembler;
    }
    printf("ready\n");
    fflush(stdout);
    double warm = 0, start = 0;
    int64_t before = 0;
    while (!check.ended)
    {
        const int fragments = aeron_subscription_poll(subscription, handler, clientd, arguments.limit);
        if (fragments < 0) fail("poll");
        if (0 == fragments)
        {
            sched_yield();
        }
        else if (0 == start)
        {
            const double time = now();
            if (0 == warm) warm = time + arguments.warmup;
            if (time >= warm)
            {
                start = time;
                before = check.received;
            }
        }
    }
    printf(
        "{\"received\": %" PRId64 ", \"sum\": %" PRId64 ", \"faults\": %" PRIu64 ", \"measured\": %" PRId64 ", \"seconds\": %.9f}\n",
        check.received, check.sum, check.faults, check.received - before, now() - start);
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void ping(client_t *client)
{
    subscription_t *subscription = add_subscription(client, arguments.reply, PONG_STREAM_ID);
    publication_t *publication = add_publication(client, arguments.channel, PING_STREAM_ID);
    while (!is_connected(publication) || !aeron_subscription_is_connected(subscription)) spend_turn(client);
    uint8_t *message = calloc(1, arguments.length);
    int64_t *times = calloc(MAX_COUNT, sizeof(int64_t));
    size_t count = 0;
    const double begin = now(), warm = begin + arguments.warmup, deadline = begin + arguments.seconds;
    double time = begin;
    for (int64_t turn = 0; (time = now()) < deadline && count < MAX_COUNT; turn++)
    {
        struct timespec start, end;
        write_record(turn, message);
        check_t check = { .next = turn };
        clock_gettime(CLOCK_MONOTONIC, &start);
        while (offer(publication, message) < 0) spend_turn(client);
        while (0 == aeron_subscription_poll(subscription, take, &check, 1)) spend_turn(client);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (time >= warm) times[count++] = (end.tv_sec - start.tv_sec) * INT64_C(1000000000) + end.tv_nsec - start.tv_nsec;
        if (check.faults != 0) fail("another message came back");
    }
    write_record(END, message);
    while (offer(publication, message) < 0) spend_turn(client);
    spend_turn(client);
    qsort(times, count, sizeof(int64_t), compare);
#define AT(share) times[(size_t)((double)(count - 1) * (share))]
    printf(
        "{\"count\": %zu, \"p50\": %" PRId64 ", \"p90\": %" PRId64 ", \"p99\": %" PRId64 ", \"p999\": %" PRId64 "}\n",
        count, AT(0.5), AT(0.9), AT(0.99), AT(0.999));
}

typedef struct { check_t check; uint8_t *message; } echo_t;

static void echo(void *clientd, const uint8_t *buffer, size_t length, void *header)
{
    echo_t *state = clientd;
    take(&state->check, buffer, length, header);
    memcpy(state->message, buffer, length);
}

static void pong(client_t *client)
{
    subscription_t *subscription = add_subscription(client, arguments.channel, PING_STREAM_ID);
    publication_t *publication = add_publication(client, arguments.reply, PONG_STREAM_ID);
    echo_t state = { .message = calloc(1, arguments.length) };
    printf("ready\n");
    fflush(stdout);
    while (!is_connected(publication) || !aeron_subscription_is_connected(subscription)) spend_turn(client);
    while (!state.check.ended)
    {
        const int returned = aeron_subscription_poll(subscription, echo, &state, 1);
        while (returned > 0 && !state.check.ended && offer(publication, state.message) < 0) spend_turn(client);
        if (0 == returned || NULL != driver) spend_turn(client);
    }
    printf("{\"received\": %" PRId64 ", \"faults\": %" PRIu64 "}\n", state.check.received, state.check.faults);
}

static void parse(const char *word)
{
    const char *value = strchr(word, '=');
    if (NULL == value) exit(2);
    const size_t name = (size_t)(value++ - word);
#define IS(text) (strlen(text) == name && 0 == strncmp(word, text, name))
    if (IS("channel")) arguments.channel = value;
    else if (IS("reply")) arguments.reply = value;
    else if (IS("driver")) arguments.invokes = 0 == strcmp(value, "invoked");
    else if (IS("how")) arguments.how = value;
    else if (IS("length")) arguments.length = strtoul(value, NULL, 10);
    else if (IS("limit")) arguments.limit = strtoul(value, NULL, 10);
    else if (IS("seconds")) arguments.seconds = strtod(value, NULL);
    else if (IS("warmup")) arguments.warmup = strtod(value, NULL);
    else if (IS("assemble")) arguments.assemble = 0 == strcmp(value, "true");
    else if (IS("concurrent")) arguments.concurrent = 0 == strcmp(value, "true");
    else exit(2);
}

static void start_driver(const char *directory)
{
    if (aeron_driver_context_init(&driver_context) < 0 ||
        aeron_driver_context_set_dir(driver_context, directory) < 0 ||
        aeron_driver_init(&driver, driver_context) < 0 ||
        aeron_driver_start(driver, true) < 0) fail("driver");
}

int main(int count, char **words)
{
    if (count < 3) return 2;
    for (int i = 3; i < count; i++) parse(words[i]);
    if (NULL == arguments.reply) arguments.reply = arguments.channel;
    if (arguments.invokes) start_driver(words[2]);
    context_t *context;
    client_t *client;
    if (aeron_context_init(&context) < 0 || aeron_context_set_dir(context, words[2]) < 0) fail("context");
    if (arguments.invokes) aeron_context_set_use_conductor_agent_invoker(context, true);
    if (aeron_init(&client, context) < 0 || aeron_start(client) < 0) fail("connect");
    if (0 == strcmp(words[1], "pub")) publish(client);
    else if (0 == strcmp(words[1], "sub")) subscribe(client);
    else if (0 == strcmp(words[1], "ping")) ping(client);
    else if (0 == strcmp(words[1], "pong")) pong(client);
    aeron_close(client);
    aeron_context_close(context);
    if (NULL != driver)
    {
        aeron_driver_close(driver);
        aeron_driver_context_close(driver_context);
    }
    return 0;
}
