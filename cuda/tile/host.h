// Matrix products for one processor core, through the compiler's vector types.
//
// One micro-kernel serves all three: the sums of up to BLOCK_ROWS rows and one panel of PANEL columns stay in
// registers while k runs. The panel of w is packed as [k][PANEL]; x is read one broadcast element at a time,
// where it lies or, where its rows run along k, from a packed copy.
#pragma once

#include "tile/matrix.h"

namespace ofa::tile {

#if defined(__AVX512F__)
constexpr int LANES = 16, PANEL_VECTORS = 2, BLOCK_ROWS = 12;
#define OFA_INTERLEAVE_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define OFA_INTERLEAVE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
constexpr int LANES = 8, PANEL_VECTORS = 2, BLOCK_ROWS = 6;
#define OFA_INTERLEAVE_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define OFA_INTERLEAVE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#if defined(__ARM_NEON)
constexpr int LANES = 4, PANEL_VECTORS = 4, BLOCK_ROWS = 6;  // 32 registers
#else
constexpr int LANES = 4, PANEL_VECTORS = 2, BLOCK_ROWS = 6;  // 16 registers
#endif
#define OFA_INTERLEAVE_LOW 0, 4, 1, 5
#define OFA_INTERLEAVE_HIGH 2, 6, 3, 7
#endif
constexpr int PANEL = LANES * PANEL_VECTORS;
constexpr int CACHE_LINE = 16;  // floats

// The sums of MAX_ROWS x MAX_COLUMNS outputs are kept, in the L2 cache, while k advances in steps of MAX_DEPTH. Where x
// is packed too, the steps are of TRANSPOSED_DEPTH: a panel, its successor and the columns of x share the L1 cache.
constexpr int TRANSPOSED_DEPTH = 64;
constexpr int MAX_DEPTH = 256, MAX_ROWS = 256, MAX_COLUMNS = 256;
constexpr int PACKED_PITCH = MAX_ROWS + 16;  // a power of two would map every k to the same few sets of the cache

// Floats from one row to the next up to which columns are read where they lie.
constexpr int NARROW = 64;

// Two panels of w, two parts of x, the sums.
constexpr int64_t SCRATCH_FLOATS =
    2 * MAX_DEPTH * PANEL + 2 * TRANSPOSED_DEPTH * PACKED_PITCH + MAX_ROWS * MAX_COLUMNS;

typedef float Vector __attribute__((vector_size(LANES * sizeof(float))));
typedef float UnalignedVector
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

OFA_INLINE Vector load(const float* p) { return *reinterpret_cast<const UnalignedVector*>(p); }
OFA_INLINE void store(float* p, Vector v) { *reinterpret_cast<UnalignedVector*>(p) = v; }

// Announces that the `count` floats from p on are needed soon.
OFA_INLINE void prefetch(const float* p, int count) {
    for (int i = 0; i < count; i += CACHE_LINE) __builtin_prefetch(p + i);
}

// Part of a matrix that is needed soon; row[column] is in the line to be fetched next.
struct Region {
    const float* row;
    int64_t pitch;
    int rows, columns, column;
};

// What is needed soon, fetched line by line while the multipliers are busy: a burst of requests would fill the queues
// to the outer caches and stop the core. What was added last is fetched first.
struct Ahead {
    static constexpr int MOST_REGIONS = 8;
    Region regions[MOST_REGIONS];
    int count = 0;

    OFA_INLINE void add(Source from, int rows, int columns) {
        if (rows > 0 && columns > 0 && count < MOST_REGIONS)
            regions[count++] = {from.data, from.pitch, rows, columns, 0};
    }

    // Gives up what was added after there were `n` regions.
    OFA_INLINE void drop_to(int n) { count = smaller(count, n); }

    // `last` is a copy of the last region, in registers.
    OFA_INLINE void fetch_line(Region& last) {
        __builtin_prefetch(last.row + last.column);
        last.column += CACHE_LINE;
        if (last.column < last.columns) return;
        last.column = 0;
        last.row += last.pitch;
        if (--last.rows == 0 && --count > 0) last = regions[count - 1];
    }
};

// Transposes LANES rows of LANES floats. Interleaving the first half of the rows with the second half rotates
// the bits of an element's (row, column) by one place; after log2(LANES) rounds row and column have changed
// places.
OFA_INLINE void transpose_square(const float* in, int64_t in_pitch, float* out, int64_t out_pitch) {
    Vector rows[LANES], mixed[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) rows[i] = load(in + i * in_pitch);
#pragma GCC unroll 4
    for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; ++i) {
            mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], OFA_INTERLEAVE_LOW);
            mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], OFA_INTERLEAVE_HIGH);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; ++i) rows[i] = mixed[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) store(out + i * out_pitch, rows[i]);
}

// panel[k][j] = w[j][k] for j < n, zero for n <= j < PANEL.
OFA_NOINLINE void pack_transposed(Source w, int n, int depth, float* panel) {
    int j = 0;
    for (; j + LANES <= n; j += LANES) {
        const float* const in = w.data + j * w.pitch;
        int k = 0;
        for (; k + LANES <= depth; k += LANES) transpose_square(in + k, w.pitch, panel + k * PANEL + j, PANEL);
        for (; k < depth; ++k)
            for (int lane = 0; lane < LANES; ++lane) panel[k * PANEL + j + lane] = in[lane * w.pitch + k];
    }
    for (; j < PANEL; ++j)
        for (int k = 0; k < depth; ++k) panel[k * PANEL + j] = j < n ? w.data[j * w.pitch + k] : 0.0f;
}

// out[k][j] = in[k][j] for j < n, zero from n to the next multiple of PANEL.
OFA_NOINLINE void pack_straight(Source in, int n, int depth, float* out, int64_t out_pitch) {
    const int whole = n - n % PANEL;
    for (int k = 0; k < depth; ++k) {
        const float* const from = in.data + k * in.pitch;
        float* const to = out + k * out_pitch;
        for (int j = 0; j < whole; j += PANEL)
            for (int v = 0; v < PANEL; v += LANES) store(to + j + v, load(from + j + v));
        if (whole < n)
            for (int j = whole; j < whole + PANEL; ++j) to[j] = j < n ? from[j] : 0.0f;
    }
}

// Rows of PANEL columns that are packed while the multipliers are busy.
struct Copy {
    Source from;
    float* to;
    int64_t to_pitch;
    int rows;

    OFA_INLINE void copy_row() {
        for (int v = 0; v < PANEL; v += LANES) store(to + v, load(from.data + v));
        from.data += from.pitch;
        to += to_pitch;
    }
};

// sums[i][0 .. PANEL) += sum over k of x(i, k) panel(k, 0 .. PANEL) for R rows, or = where `first`. x is [R, depth], or
// [depth, R] where TRANSPOSE_X.
template <int R, bool TRANSPOSE_X>
OFA_NOINLINE void multiply_block(int depth, Source x, Source panel, float* sums, bool first, Ahead& ahead, Copy copy) {
    // Every loop over c is unrolled: one that is not keeps it in memory between the loops over k.
    Vector c[R][PANEL_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < PANEL_VECTORS; ++v) c[i][v] = first ? Vector{} : load(sums + i * PANEL + v * LANES);
    const auto add_products = [&]() __attribute__((always_inline)) {
        Vector b[PANEL_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < PANEL_VECTORS; ++v) b[v] = load(panel.data + v * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            const float a = TRANSPOSE_X ? x.data[i] : x.data[i * x.pitch];
#pragma GCC unroll 4
            for (int v = 0; v < PANEL_VECTORS; ++v) c[i][v] += a * b[v];
        }
        panel.data += panel.pitch;
        x.data += TRANSPOSE_X ? x.pitch : 1;
    };
    int k = 0;
    if (ahead.count > 0) {
        Region last = ahead.regions[ahead.count - 1];
        for (; k < copy.rows && ahead.count > 0; ++k) {
            add_products();
            copy.copy_row();
            ahead.fetch_line(last);
        }
        for (; k < depth && ahead.count > 0; ++k) {
            add_products();
            ahead.fetch_line(last);
        }
        if (ahead.count > 0) ahead.regions[ahead.count - 1] = last;
    }
    for (; k < copy.rows; ++k) {
        add_products();
        copy.copy_row();
    }
    for (; k < depth; ++k) add_products();
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < PANEL_VECTORS; ++v) store(sums + i * PANEL + v * LANES, c[i][v]);
}

// The number of rows is a template argument, so that the sums stay in registers.
template <int R, bool TRANSPOSE_X>
OFA_INLINE void multiply_rows(int rows, int depth, Source x, Source panel, float* sums, bool first, Ahead& ahead,
                              const Copy& copy) {
    if constexpr (R > 0) {
        if (rows == R)
            multiply_block<R, TRANSPOSE_X>(depth, x, panel, sums, first, ahead, copy);
        else
            multiply_rows<R - 1, TRANSPOSE_X>(rows, depth, x, panel, sums, first, ahead, copy);
    }
}

// A factor whose rows run along k and that is read where it lies, being narrow enough for that.
OFA_INLINE bool read_in_place(Source factor) { return factor.pitch <= NARROW; }

// Two places for what is packed: while one is read, the other may be filled.
struct Packed {
    float* now;
    float* next;
    bool next_is_filled = false;

    // Whether `now` is already what is needed now.
    OFA_INLINE bool turn() {
        if (!next_is_filled) return false;
        float* const was = now;
        now = next, next = was, next_is_filled = false;
        return true;
    }
};

// Where `depth` rows of PANEL columns of the factor w can be read, of which n are its own.
template <bool TRANSPOSE_W>
OFA_INLINE Source panel_of(Source w, int n, int depth, Packed& packed) {
    if (!packed.turn()) {
        if (TRANSPOSE_W)
            pack_transposed(w, n, depth, packed.now);
        else if (n == PANEL && read_in_place(w))
            return w;
        else
            pack_straight(w, n, depth, packed.now, PANEL);
    }
    return {packed.now, PANEL};
}

// Where `depth` rows of m columns of the factor x [depth, m] can be read.
OFA_INLINE Source columns_of(Source x, int m, int depth, Packed& packed) {
    if (read_in_place(x)) return x;
    if (!packed.turn()) pack_straight(x, m, depth, packed.now, PACKED_PITCH);
    return {packed.now, PACKED_PITCH};
}

// What the last blocks of a panel pack for the next, one copy each.
struct Copies {
    Copy all[MAX_ROWS / PANEL + 1];
    int count = 0;

    OFA_INLINE void add(Source from, int rows, float* to, int64_t to_pitch) {
        all[count++] = {from, to, to_pitch, rows};
    }
    OFA_INLINE Copy of_block(int blocks_left) const { return blocks_left <= count ? all[blocks_left - 1] : Copy{}; }
};

// The width of a panel all of whose columns are outputs: a constant, so that loops over it are unrolled.
struct Whole {
    OFA_INLINE operator int() const { return PANEL; }
};

// Hands the outputs from (row, column) on to the epilogue. Out of line, or the compiler would make the two widths one.
template <class Width, class Epilogue>
OFA_NOINLINE void finish_rows(int row, int column, int rows, const float* sums, Width width, const Epilogue& epilogue) {
    for (int i = 0; i < rows; ++i) epilogue(row + i, column, sums + i * PANEL, width);
}

// The at most MAX_ROWS x MAX_COLUMNS outputs from (row0, col0) on; x and w start there.
template <bool TRANSPOSE_X, bool TRANSPOSE_W, class Epilogue>
OFA_INLINE void multiply_part(int row0, int col0, int m, int n, int depth, Source x, Source w, float* scratch,
                              const Epilogue& epilogue) {
    constexpr int MOST = TRANSPOSE_X ? TRANSPOSED_DEPTH : MAX_DEPTH;
    float* const packed_x = scratch + 2 * MAX_DEPTH * PANEL;
    float* const all_sums = packed_x + 2 * TRANSPOSED_DEPTH * PACKED_PITCH;
    Packed panels = {scratch, scratch + MAX_DEPTH * PANEL};
    Packed parts = {packed_x, packed_x + TRANSPOSED_DEPTH * PACKED_PITCH};
    // Blocks of nearly equal size: a short one at the end could not keep the multipliers busy.
    const int blocks = (m + BLOCK_ROWS - 1) / BLOCK_ROWS, usual_rows = m / blocks, larger_blocks = m % blocks;
    const bool copies_w = !TRANSPOSE_W && !read_in_place(w);
    const bool copies_x = TRANSPOSE_X && !read_in_place(x) && m % PANEL == 0;
    // A caller that says nothing of its outputs has its operands in the caches.
    constexpr bool LOOK_AHEAD = requires { epilogue.touches(0, 0, [](const float*, int64_t) {}); };
    Ahead ahead;
    for (int k0 = 0; k0 < depth; k0 += MOST) {
        const int part = smaller(MOST, depth - k0), next_part = smaller(MOST, depth - k0 - part);
        const bool first = k0 == 0, last = next_part == 0;
        const Source columns = TRANSPOSE_X ? columns_of(x.from(k0, 0), m, part, parts) : Source{};
        ahead.drop_to(0);
        if (LOOK_AHEAD && TRANSPOSE_X) ahead.add(x.from(k0 + part, 0), next_part, m);
        const int ahead_in_part = ahead.count;
        for (int n0 = 0; n0 < n; n0 += PANEL) {
            const int width = smaller(PANEL, n - n0), next_width = smaller(PANEL, n - n0 - width);
            const Source panel =
                panel_of<TRANSPOSE_W>(TRANSPOSE_W ? w.from(n0, k0) : w.from(k0, n0), width, part, panels);
            ahead.drop_to(ahead_in_part);
            if (LOOK_AHEAD && TRANSPOSE_W) ahead.add(w.from(n0 + width, k0), next_width, part);
            if (LOOK_AHEAD && !TRANSPOSE_W) ahead.add(w.from(k0, n0 + width), part, next_width);
            const int ahead_in_panel = ahead.count;
            Copies copies;
            if (copies_w && next_width == PANEL) copies.add(w.from(k0, n0 + PANEL), part, panels.next, PANEL);
            if (copies_w && next_width == 0 && !last && n >= PANEL)
                copies.add(w.from(k0 + part, 0), next_part, panels.next, PANEL);
            panels.next_is_filled = copies.count > 0;
            parts.next_is_filled = copies_x && next_width == 0 && !last;
            for (int j = 0; parts.next_is_filled && j < m; j += PANEL)
                copies.add(x.from(k0 + part, j), next_part, parts.next + j, PACKED_PITCH);
            for (int block = 0, begin = 0, end; block < blocks; ++block, begin = end) {
                end = begin + usual_rows + (block < larger_blocks ? 1 : 0);
                const Source a = TRANSPOSE_X ? columns.from(0, begin) : x.from(begin, k0);
                float* const sums = all_sums + n0 * MAX_ROWS + begin * PANEL;
                ahead.drop_to(ahead_in_panel);
                if (LOOK_AHEAD && !TRANSPOSE_X && n0 == 0)
                    ahead.add(x.from(end, k0), smaller(BLOCK_ROWS, m - end), part);
                if constexpr (LOOK_AHEAD)
                    if (last)
                        epilogue.touches(row0 + begin, col0 + n0, [&](const float* row, int64_t pitch) {
                            ahead.add({row, pitch}, end - begin, width);
                        });
                multiply_rows<BLOCK_ROWS, TRANSPOSE_X>(end - begin, part, a, panel, sums, first, ahead,
                                                       copies.of_block(blocks - block));
                if (!last) continue;
                if (width == PANEL)
                    finish_rows(row0 + begin, col0 + n0, end - begin, sums, Whole{}, epilogue);
                else
                    finish_rows(row0 + begin, col0 + n0, end - begin, sums, width, epilogue);
            }
        }
    }
}

// `TRANSPOSE_X`: x is [depth, m] instead of [m, depth]; `TRANSPOSE_W`: w is [n, depth] instead of [depth, n].
template <bool TRANSPOSE_X, bool TRANSPOSE_W, class Epilogue>
OFA_INLINE void multiply(Block& /*block*/, int m, int n, int depth, Source x, Source w, float* scratch,
                         const Epilogue& epilogue) {
    for (int m0 = 0; m0 < m; m0 += MAX_ROWS)
        for (int n0 = 0; n0 < n; n0 += MAX_COLUMNS)
            multiply_part<TRANSPOSE_X, TRANSPOSE_W>(
                m0, n0, smaller(MAX_ROWS, m - m0), smaller(MAX_COLUMNS, n - n0), depth,
                TRANSPOSE_X ? x.from(0, m0) : x.from(m0, 0), TRANSPOSE_W ? w.from(n0, 0) : w.from(0, n0), scratch,
                epilogue);
}

#undef OFA_INTERLEAVE_LOW
#undef OFA_INTERLEAVE_HIGH

}  // namespace ofa::tile
