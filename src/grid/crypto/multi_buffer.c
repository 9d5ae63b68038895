/* SHA-256 of many messages at once: two at a time, on processors with the SHA extensions of x86.
 *
 * One message alone leaves the processor's SHA unit half idle, because each step waits for the one before it.
 * Two independent messages, their steps interleaved, fill it. multi_buffer.py
 * loads this as a plain library: no Python header is needed. Nothing is allocated, nothing is kept between calls; built for
 * other processors, or run on one without these instructions, lanes_usable() is 0 and nothing else may be called.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define HAVE_LANES 1
#define SHA_CODE __attribute__((target("sha,sse4.1,ssse3")))
#else
#define HAVE_LANES 0
#define SHA_CODE
#endif

#define EXPORT __attribute__((visibility("default")))

/* A message under way: the state after `done` bytes, a multiple of 64; then up to 63 bytes of `rest`. */
struct lanes_stream {
    uint32_t state[8];
    uint64_t done;
    uint32_t rest_size;
    uint8_t rest[64];
};

/* 1 if this processor has the instructions that all else here takes. */
EXPORT int lanes_usable(void)
{
#if HAVE_LANES
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 9)) || !(c & (1u << 19)))
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
#else
    return 0;
#endif
}

#if HAVE_LANES

static const uint32_t ROUND[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t START[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* The instructions want the state as ABEF and CDGH. */
SHA_CODE static inline void load_state(const uint32_t *state, __m128i *abef, __m128i *cdgh)
{
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
    *abef = _mm_alignr_epi8(dcba, efgh, 8);
    *cdgh = _mm_blend_epi16(efgh, dcba, 0xF0);
}

SHA_CODE static inline void store_state(uint32_t *state, __m128i abef, __m128i cdgh)
{
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Words 4q .. 4q+3 of the message schedule; m holds the sixteen before them, in a ring. */
#define WORDS(m, data, q)                                                                                        \
    do {                                                                                                         \
        if ((q) < 4)                                                                                             \
            m[(q) & 3] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)((data) + 16 * (q))), swap);          \
        else                                                                                                     \
            m[(q) & 3] = _mm_sha256msg2_epu32(                                                                   \
                _mm_add_epi32(_mm_sha256msg1_epu32(m[(q) & 3], m[((q) + 1) & 3]),                                \
                              _mm_alignr_epi8(m[((q) + 3) & 3], m[((q) + 2) & 3], 4)),                           \
                m[((q) + 3) & 3]);                                                                               \
    } while (0)

#define KEYED(m, q) _mm_add_epi32(m[(q) & 3], _mm_load_si128((const __m128i *)(ROUND + 4 * (q))))

SHA_CODE static void hash_one(uint32_t *state, const uint8_t *data, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bULL, 0x0405060700010203ULL);
    __m128i abef, cdgh, m[4];
    load_state(state, &abef, &cdgh);
    for (; blocks; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
#pragma GCC unroll 16
        for (int q = 0; q < 16; q++) {
            WORDS(m, data, q);
            __m128i keyed = KEYED(m, q);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    store_state(state, abef, cdgh);
}

SHA_CODE static void hash_two(uint32_t *state, const uint8_t *data, uint32_t *state2, const uint8_t *data2, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bULL, 0x0405060700010203ULL);
    __m128i abef, cdgh, m[4], abef2, cdgh2, m2[4];
    load_state(state, &abef, &cdgh);
    load_state(state2, &abef2, &cdgh2);
    for (; blocks; blocks--, data += 64, data2 += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh, abef2_before = abef2, cdgh2_before = cdgh2;
#pragma GCC unroll 16
        for (int q = 0; q < 16; q++) {
            WORDS(m, data, q);
            WORDS(m2, data2, q);
            __m128i keyed = KEYED(m, q);
            __m128i keyed2 = KEYED(m2, q);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
            cdgh2 = _mm_sha256rnds2_epu32(cdgh2, abef2, keyed2);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0E));
            abef2 = _mm_sha256rnds2_epu32(abef2, cdgh2, _mm_shuffle_epi32(keyed2, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
        abef2 = _mm_add_epi32(abef2, abef2_before);
        cdgh2 = _mm_add_epi32(cdgh2, cdgh2_before);
    }
    store_state(state, abef, cdgh);
    store_state(state2, abef2, cdgh2);
}

#endif

#if HAVE_LANES

/* A lane works through one message: the bytes behind a prefix, in pieces, a step of whole blocks at a time. */
enum end { END_OPEN, END_PADDED, END_OUTER, END_DONE };

struct lane {
    uint32_t state[8];
    enum end end;
    const uint8_t *next; /* the blocks of the present step that are left */
    size_t blocks;
    const uint8_t *const *pieces;
    const size_t *sizes;
    size_t pieces_left;
    const uint8_t *const *runs; /* if there are any, the `size` bytes at `offset` of each, until none is `left` */
    size_t offset, size;
    uint64_t left;
    const uint8_t *piece; /* what is left of the present piece */
    size_t piece_size;
    uint64_t total;
    size_t carry_size; /* bytes of `carry` that wait for the rest of their block */
    uint8_t carry[128];
    struct lanes_stream *stream; /* a stream goes on behind its pieces, all else is padded and hashed once more */
    uint8_t *digest;
};

static void put_big_endian(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        out[i] = (uint8_t)value;
}

/* Make the bytes carried the last ones of a message of `total` bytes. */
static void pad(struct lane *lane, uint64_t total)
{
    lane->blocks = lane->carry_size < 56 ? 1 : 2;
    lane->next = lane->carry;
    memset(lane->carry + lane->carry_size, 0, 64 * lane->blocks - lane->carry_size);
    lane->carry[lane->carry_size] = 0x80;
    put_big_endian(lane->carry + 64 * lane->blocks - 8, total * 8, 8);
}

/* To the next piece; 0 once there is none. */
static int next_piece(struct lane *lane)
{
    if (!lane->runs) {
        if (!lane->pieces_left)
            return 0;
        lane->pieces_left--;
        lane->piece = *lane->pieces++;
        lane->piece_size = *lane->sizes++;
        return 1;
    }
    if (!lane->left)
        return 0;
    lane->piece = *lane->runs++ + lane->offset;
    lane->piece_size = lane->left < lane->size ? lane->left : lane->size;
    lane->left -= lane->piece_size;
    return 1;
}

/* The next step of whole blocks inside the pieces; 0 once there is none. */
static int step_inside(struct lane *lane)
{
    for (;;) {
        if (lane->carry_size == 64) { /* was the last step */
            lane->carry_size = 0;
        } else if (lane->carry_size + lane->piece_size < 64) {
            if (lane->piece_size)
                memcpy(lane->carry + lane->carry_size, lane->piece, lane->piece_size);
            lane->carry_size += lane->piece_size;
            lane->piece_size = 0;
            if (!next_piece(lane))
                return 0;
        } else if (lane->carry_size) {
            const size_t fill = 64 - lane->carry_size;
            memcpy(lane->carry + lane->carry_size, lane->piece, fill);
            lane->piece += fill;
            lane->piece_size -= fill;
            lane->carry_size = 64;
            lane->next = lane->carry;
            lane->blocks = 1;
            return 1;
        } else {
            lane->next = lane->piece;
            lane->blocks = lane->piece_size / 64;
            lane->piece += 64 * lane->blocks;
            lane->piece_size %= 64;
            return 1;
        }
    }
}

/* To the next step, if this one is over; a message ends with its hash written, a stream with its state stored. */
static void advance(struct lane *lane)
{
    while (lane->blocks == 0 && lane->end != END_DONE) {
        if (lane->end == END_OPEN) {
            if (step_inside(lane))
                return;
            if (lane->stream) {
                memcpy(lane->stream->state, lane->state, sizeof lane->state);
                memcpy(lane->stream->rest, lane->carry, lane->carry_size);
                lane->stream->rest_size = (uint32_t)lane->carry_size;
                lane->stream->done = lane->total - lane->carry_size;
                lane->end = END_DONE;
            } else {
                pad(lane, lane->total);
                lane->end = END_PADDED;
            }
        } else if (lane->end == END_PADDED) {
            for (int i = 0; i < 8; i++)
                put_big_endian(lane->carry + 4 * i, lane->state[i], 4);
            lane->carry_size = 32;
            pad(lane, 32);
            memcpy(lane->state, START, sizeof START);
            lane->end = END_OUTER;
        } else {
            for (int i = 0; i < 8; i++)
                put_big_endian(lane->digest + 4 * i, lane->state[i], 4);
            lane->end = END_DONE;
        }
    }
}

/* What all messages begin with; `size` bytes follow, and where they are is already said. */
static void start(struct lane *lane, const struct lanes_stream *prefix, uint64_t size, struct lanes_stream *stream,
                  uint8_t *digest)
{
    memcpy(lane->state, prefix->state, sizeof lane->state);
    memcpy(lane->carry, prefix->rest, prefix->rest_size);
    lane->carry_size = prefix->rest_size;
    lane->piece = NULL;
    lane->piece_size = 0;
    lane->total = prefix->done + prefix->rest_size + size;
    lane->blocks = 0;
    lane->stream = stream;
    lane->digest = digest;
    lane->end = END_OPEN;
    advance(lane);
}

static void begin(struct lane *lane, const struct lanes_stream *prefix, const uint8_t *const *pieces,
                  const size_t *sizes, size_t piece_count, struct lanes_stream *stream, uint8_t *digest)
{
    uint64_t size = 0;
    for (size_t i = 0; i < piece_count; i++)
        size += sizes[i];
    lane->runs = NULL;
    lane->pieces = pieces;
    lane->sizes = sizes;
    lane->pieces_left = piece_count;
    start(lane, prefix, size, stream, digest);
}

/* A message of `left` bytes: the `size` bytes at `offset` of one run after the other. There are runs enough for it. */
static void begin_row(struct lane *lane, const struct lanes_stream *prefix, const uint8_t *const *runs, size_t offset,
                      size_t size, uint64_t left, uint8_t *digest)
{
    lane->runs = runs;
    lane->offset = offset;
    lane->size = size;
    lane->left = left;
    start(lane, prefix, left, NULL, digest);
}

static void work(struct lane *a, struct lane *b)
{
    if (a->end != END_DONE && b->end != END_DONE) {
        const size_t blocks = a->blocks < b->blocks ? a->blocks : b->blocks;
        hash_two(a->state, a->next, b->state, b->next, blocks);
        a->next += 64 * blocks;
        b->next += 64 * blocks;
        a->blocks -= blocks;
        b->blocks -= blocks;
        advance(a);
        advance(b);
    } else {
        struct lane *only = a->end != END_DONE ? a : b;
        hash_one(only->state, only->next, only->blocks);
        only->blocks = 0;
        advance(only);
    }
}

#endif

EXPORT size_t lanes_stream_size(void)
{
    return sizeof(struct lanes_stream);
}

/* Make it the stream in front of the first byte. */
EXPORT void lanes_start(struct lanes_stream *stream)
{
#if HAVE_LANES
    memcpy(stream->state, START, sizeof START);
    stream->done = 0;
    stream->rest_size = 0;
#else
    (void)stream;
#endif
}

/* Hash `count` messages; message i is what prefixes[i] had, and then the next piece_counts[i] of the pieces. Its SHA-256
 * is hashed once more, to digests[32 * i]. `running`, if there is one, takes `data` meanwhile; it goes on behind it. */
EXPORT void lanes_hash(struct lanes_stream *running, const uint8_t *data, size_t data_size, size_t count,
                       const struct lanes_stream *const *prefixes, const size_t *piece_counts,
                       const uint8_t *const *pieces, const size_t *sizes, uint8_t *digests)
{
#if HAVE_LANES
    struct lane lanes[2];
    size_t next = 0;
    lanes[0].end = lanes[1].end = END_DONE;
    if (running)
        begin(&lanes[0], running, &data, &data_size, 1, running, NULL);
    for (;;) {
        for (int i = 0; i < 2; i++)
            for (; lanes[i].end == END_DONE && next < count; next++) {
                begin(&lanes[i], prefixes[next], pieces, sizes, piece_counts[next], NULL, digests + 32 * next);
                pieces += piece_counts[next];
                sizes += piece_counts[next];
            }
        if (lanes[0].end == END_DONE && lanes[1].end == END_DONE)
            return;
        work(&lanes[0], &lanes[1]);
    }
#else
    (void)running, (void)data, (void)data_size, (void)count, (void)prefixes, (void)piece_counts;
    (void)pieces, (void)sizes, (void)digests;
#endif
}

/* A row of a Merkle tree from the row below it: parents[32 * i] of the two hashes at children[64 * i]. */
EXPORT void lanes_join_pairs(const uint8_t *children, size_t count, uint8_t *parents)
{
#if HAVE_LANES
    static const uint8_t HEAD[] = "25:Merkle tree internal node,32:", MIDDLE[] = ",32:", TAIL[] = ",";
    static const size_t SIZES[5] = {32, 32, 4, 32, 1};
    struct lanes_stream empty;
    struct lane lanes[2];
    const uint8_t *pieces[2][5];
    size_t next = 0;
    lanes_start(&empty);
    lanes[0].end = lanes[1].end = END_DONE;
    for (;;) {
        for (int i = 0; i < 2; i++)
            if (lanes[i].end == END_DONE && next < count) {
                const uint8_t *pair = children + 64 * next;
                const uint8_t *const parts[5] = {HEAD, pair, MIDDLE, pair + 32, TAIL};
                memcpy(pieces[i], parts, sizeof parts);
                begin(&lanes[i], &empty, pieces[i], SIZES, 5, NULL, parents + 32 * next++);
            }
        if (lanes[0].end == END_DONE && lanes[1].end == END_DONE)
            return;
        work(&lanes[0], &lanes[1]);
    }
#else
    (void)children, (void)count, (void)parents;
#endif
}

/* Hash what is cut into rows: piece j of a run, of `size` bytes or, the last of `count`, `last_size`, is in row j.
 * Each piece of the shares is a message behind `leaf`, that in row j of share i to leaves[32 * (i * count + j)]. The
 * pieces of the columns in one row, joined, are a message behind `segment`, to segments[32 * j]. All segments together
 * have `total` bytes, which end in the last row, maybe before its end; without columns there are none. */
EXPORT void lanes_hash_rows(size_t count, size_t size, size_t last_size, const struct lanes_stream *leaf,
                            size_t share_count, const uint8_t *const *shares, uint8_t *leaves,
                            const struct lanes_stream *segment, size_t column_count, const uint8_t *const *columns,
                            size_t total, uint8_t *segments)
{
#if HAVE_LANES
    const size_t first_share = column_count ? 1 : 0;
    struct lane lanes[2];
    size_t row = 0, next = 0; /* A row's segment comes before its pieces: both lanes read the same bytes at a time. */
    lanes[0].end = lanes[1].end = END_DONE;
    for (;;) {
        for (int i = 0; i < 2; i++)
            while (lanes[i].end == END_DONE && row < count && first_share + share_count) {
                const size_t offset = row * size, share = next - first_share;
                const size_t piece = row + 1 < count ? size : last_size;
                const uint64_t segment_size = row + 1 < count ? column_count * size : total - column_count * offset;
                if (next < first_share)
                    begin_row(&lanes[i], segment, columns, offset, piece, segment_size, segments + 32 * row);
                else
                    begin_row(&lanes[i], leaf, shares + share, offset, piece, piece, leaves + 32 * (share * count + row));
                if (++next == first_share + share_count) {
                    next = 0;
                    row++;
                }
            }
        if (lanes[0].end == END_DONE && lanes[1].end == END_DONE)
            return;
        work(&lanes[0], &lanes[1]);
    }
#else
    (void)count, (void)size, (void)last_size, (void)leaf, (void)share_count, (void)shares, (void)leaves;
    (void)segment, (void)column_count, (void)columns, (void)total, (void)segments;
#endif
}
