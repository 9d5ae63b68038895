/* line: a router between network namespaces, with delay, loss and limited rates, for kernels without netem.
 *
 *   line SEED LOSS_PPM OFFLOAD URGENT HOST...        HOST: NAMESPACE,ADDRESS,DELAY_US,UP_BPS,DOWN_BPS,QUEUE_BYTES
 *
 * Each host has a TUN device, `line0`, in its namespace. What a host sends waits its turn at the host's rate up, is lost or
 * not, travels for the delays of both hosts, and waits its turn at the other host's rate down. A packet that finds more
 * than QUEUE_BYTES waiting before it is dropped, as a router does. A rate of 0 is no limit. With OFFLOAD, packets are as
 * large as TCP hands them to a network card (up to 64 KiB), and are lost whole: use it without loss only.
 *
 * With URGENT, and the right to it, the line runs before all other processes: a network does not slow down because the
 * machines on it are busy.
 *
 * It prints `ready` when the devices are there. A line on its standard input asks for its counts, which it prints as one
 * line of JSON. It ends when its standard input does, and the devices go with it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_HOSTS 256
#define MAX_HELD (1LL << 29) /* bytes on their way; more is dropped */
#define LARGEST (sizeof(struct virtio_net_hdr) + 65536)
#define FRAMING 14 /* what Ethernet adds to a packet, counted as tc's tbf counts it */
#define READS_IN_A_ROW 64

enum place { AT_DOWNLINK, AT_HOST };

struct packet {
    int from, to, size;
    int64_t wire; /* bytes on the line, headers of every segment included */
    enum place place;
    unsigned char bytes[];
};

struct event {
    int64_t at;
    uint64_t order;
    struct packet *packet;
};

struct host {
    int tun;
    uint32_t address;
    int64_t delay, up, down, queue; /* nanoseconds; bits a second; bytes */
    int64_t up_free, down_free;     /* when the link has sent all that waits */
    uint64_t packets, bytes, lost, dropped, refused, delivered;
};

static struct host hosts[MAX_HOSTS];
static int count;
static struct event *heap;
static size_t held, room;
static int64_t held_bytes;
static uint64_t orders, late, late_most, state, loss;

static void die(const char *what)
{
    fprintf(stderr, "line: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint64_t draw(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ULL;
}

static int before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(int64_t at, struct packet *packet)
{
    struct event event = {at, orders++, packet};
    size_t i = held++;
    if (held > room) {
        room = room ? room * 2 : 1024;
        heap = realloc(heap, room * sizeof *heap);
        if (!heap)
            die("memory");
    }
    while (i && before(&event, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

static struct event pop(void)
{
    struct event first = heap[0], last = heap[--held];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= held)
            break;
        if (child + 1 < held && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

/* When the link has sent a packet that reaches it at `at`; -1 if too much waits there already. */
static int64_t through(int64_t at, int64_t rate, int64_t queue, int64_t wire, int64_t *free_at)
{
    int64_t start = at > *free_at ? at : *free_at;
    if (!rate)
        return at;
    if ((start - at) / 1e9 * rate / 8 > queue)
        return -1;
    *free_at = start + (int64_t)(wire * 8 * 1e9 / rate);
    return *free_at;
}

static int64_t wire_size(const unsigned char *bytes, int size)
{
    const struct virtio_net_hdr *h = (const void *)bytes;
    int64_t packet = size - (int64_t)sizeof *h, segments = 1;
    if (h->gso_type != VIRTIO_NET_HDR_GSO_NONE && h->gso_size && packet > h->hdr_len) {
        segments = (packet - h->hdr_len + h->gso_size - 1) / h->gso_size;
        packet += (segments - 1) * h->hdr_len;
    }
    return packet + segments * FRAMING;
}

static void drop(struct packet *packet)
{
    held_bytes -= packet->size;
    free(packet);
}

static void enter(int from, const unsigned char *bytes, int size, int64_t now)
{
    struct host *host = &hosts[from];
    const unsigned char *ip = bytes + sizeof(struct virtio_net_hdr);
    uint32_t destination;
    int to;
    if (size < (int)sizeof(struct virtio_net_hdr) + 20 || ip[0] >> 4 != 4)
        return;
    memcpy(&destination, ip + 16, 4);
    for (to = 0; to < count && hosts[to].address != destination; to++)
        ;
    if (to == count)
        return;
    host->packets++;
    host->bytes += size;
    int64_t wire = wire_size(bytes, size);
    int64_t at = through(now, host->up, host->queue, wire, &host->up_free);
    if (at < 0 || held_bytes > MAX_HELD) {
        host->dropped++;
        return;
    }
    if (loss && draw() % 1000000 < loss) {
        host->lost++;
        return;
    }
    struct packet *packet = malloc(sizeof *packet + size);
    if (!packet)
        die("memory");
    *packet = (struct packet){from, to, size, wire, AT_DOWNLINK};
    memcpy(packet->bytes, bytes, size);
    held_bytes += size;
    push(at + host->delay + hosts[to].delay, packet);
}

static void advance(struct event event, int64_t now)
{
    struct packet *packet = event.packet;
    struct host *host = &hosts[packet->to];
    if (packet->place == AT_DOWNLINK) {
        int64_t at = through(event.at, host->down, host->queue, packet->wire, &host->down_free);
        if (at < 0) {
            hosts[packet->from].dropped++;
            drop(packet);
            return;
        }
        if (at > now) {
            packet->place = AT_HOST;
            push(at, packet);
            return;
        }
        event.at = at;
    }
    uint64_t behind = now - event.at;
    late += behind > 1000000;
    if (behind > late_most)
        late_most = behind;
    if (write(host->tun, packet->bytes, packet->size) == packet->size)
        host->delivered++;
    else
        host->refused++;
    drop(packet);
}

static void report(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"urgent\": %s, \"cpu_s\": %.6f, \"late_over_1ms\": %llu, \"latest_ms\": %.3f, \"hosts\": [",
           sched_getscheduler(0) == SCHED_RR ? "true" : "false", used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
           (unsigned long long)late, late_most / 1e6);
    for (int i = 0; i < count; i++) {
        struct host *h = &hosts[i];
        printf("%s{\"packets\": %llu, \"bytes\": %llu, \"lost\": %llu, \"dropped\": %llu, \"refused\": %llu, "
               "\"delivered\": %llu}",
               i ? ", " : "", (unsigned long long)h->packets, (unsigned long long)h->bytes,
               (unsigned long long)h->lost, (unsigned long long)h->dropped, (unsigned long long)h->refused,
               (unsigned long long)h->delivered);
    }
    puts("]}");
    fflush(stdout);
}

static void make_device(struct host *host, const char *space, int offload)
{
    struct ifreq request = {0};
    int header = sizeof(struct virtio_net_hdr), fd = open(space, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        die(space);
    close(fd);
    host->tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (host->tun < 0)
        die("/dev/net/tun");
    strcpy(request.ifr_name, "line0");
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(host->tun, TUNSETIFF, &request) || ioctl(host->tun, TUNSETVNETHDRSZ, &header) ||
        ioctl(host->tun, TUNSETOFFLOAD, offload ? TUN_F_CSUM | TUN_F_TSO4 : 0))
        die("a TUN device");
}

static void add_host(char *text, int offload)
{
    struct host *host = &hosts[count++];
    char *part[6], *rest = text;
    for (int i = 0; i < 6; i++)
        if (!(part[i] = strsep(&rest, ",")))
            errno = EINVAL, die("a host");
    if (inet_pton(AF_INET, part[1], &host->address) != 1)
        errno = EINVAL, die(part[1]);
    host->delay = atoll(part[2]) * 1000;
    host->up = atoll(part[3]);
    host->down = atoll(part[4]);
    host->queue = atoll(part[5]);
    make_device(host, part[0], offload);
}

static void run(void)
{
    static unsigned char bytes[LARGEST];
    struct pollfd watched[MAX_HOSTS + 1];
    for (int i = 0; i < count; i++)
        watched[i] = (struct pollfd){hosts[i].tun, POLLIN, 0};
    watched[count] = (struct pollfd){0, POLLIN, 0};
    for (;;) {
        int64_t now = now_ns();
        while (held && heap[0].at <= now)
            advance(pop(), now);
        struct timespec rest = {0};
        if (held) {
            int64_t left = heap[0].at - now_ns();
            if (left > 0)
                rest = (struct timespec){left / 1000000000, left % 1000000000};
        }
        if (ppoll(watched, count + 1, held ? &rest : NULL, NULL) < 0 && errno != EINTR)
            die("poll");
        now = now_ns();
        for (int i = 0; i < count; i++)
            for (int n = 0; watched[i].revents & POLLIN && n < READS_IN_A_ROW; n++) {
                int size = read(hosts[i].tun, bytes, sizeof bytes);
                if (size <= 0)
                    break;
                enter(i, bytes, size, now);
            }
        if (watched[count].revents) {
            char asked[64];
            if (read(0, asked, sizeof asked) <= 0)
                return;
            report();
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc - 5 > MAX_HOSTS) {
        fputs("usage: line SEED LOSS_PPM OFFLOAD URGENT HOST...\n", stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1000);
    state = strtoull(argv[1], NULL, 10) * 2 + 88172645463325253ULL;
    loss = strtoull(argv[2], NULL, 10);
    if (atoi(argv[4]))
        sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
    for (int i = 5; i < argc; i++)
        add_host(argv[i], atoi(argv[3]));
    puts("ready");
    fflush(stdout);
    run();
    return 0;
}
