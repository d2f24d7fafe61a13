// The innermost loops: one column or one span of pixels.
#pragma once

#include "scratch.h"

namespace doom {
namespace render {

constexpr int ROW_SHIFT = 25;               // of the 7 bits of a row at the top of a word

// Reads wrap at 128 rows whatever the texture's height: what is above is shifted out of the word.
OFA_INLINE void draw_column(uint8_t* frame, const WadBlob& wad, const uint8_t* colormaps, const Column& c) {
    const uint8_t* OFA_RESTRICT source = bytes_at(wad, c.source);
    const uint8_t* OFA_RESTRICT map = colormaps + 256 * c.map;
    uint8_t* OFA_RESTRICT pixel = frame + c.first * SCREEN_WIDTH + c.x;
    const uint32_t step = uint32_t(c.step) << (ROW_SHIFT - FIXED_BITS);
    uint32_t row = uint32_t(c.fraction) << (ROW_SHIFT - FIXED_BITS);
    const auto next = [&] {
        const uint8_t color = map[source[row >> ROW_SHIFT]];
        row += step;
        return color;
    };
    // What eight does not divide comes first, by one jump into its rows.
    const int n = c.last - c.first + 1, rest = n & 7;
    pixel += (rest - 8) * SCREEN_WIDTH;
    switch (rest) {
    case 7: pixel[1 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 6: pixel[2 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 5: pixel[3 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 4: pixel[4 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 3: pixel[5 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 2: pixel[6 * SCREEN_WIDTH] = next(); [[fallthrough]];
    case 1: pixel[7 * SCREEN_WIDTH] = next(); [[fallthrough]];
    default: break;
    }
    for (int eights = n >> 3; eights > 0; --eights) {
        pixel += 8 * SCREEN_WIDTH;
        pixel[0 * SCREEN_WIDTH] = next();
        pixel[1 * SCREEN_WIDTH] = next();
        pixel[2 * SCREEN_WIDTH] = next();
        pixel[3 * SCREEN_WIDTH] = next();
        pixel[4 * SCREEN_WIDTH] = next();
        pixel[5 * SCREEN_WIDTH] = next();
        pixel[6 * SCREEN_WIDTH] = next();
        pixel[7 * SCREEN_WIDTH] = next();
    }
}

// A post and what rounding adds; a wrapped position must not leave the picture (blob.h pads it for that).
constexpr int LONGEST_POST = 255 + 16;

// Player colours: the green range of the palette becomes grey, brown or red.
OFA_INLINE uint8_t translate(int translation, uint8_t color) {
    if (color < 0x70 || color > 0x7f) return color;
    const int base = translation == 1 ? 0x60 : translation == 2 ? 0x40 : 0x20;
    return uint8_t(base + (color & 15));
}

OFA_INLINE void draw_translated_column(uint8_t* frame, const WadBlob& wad, const uint8_t* colormaps, const Column& c,
                                       int translation) {
    const uint8_t* source = bytes_at(wad, c.source);
    const uint8_t* map = colormaps + 256 * c.map;
    uint8_t* pixel = frame + c.first * SCREEN_WIDTH + c.x;
    Fixed fraction = c.fraction;
    for (int n = c.last - c.first + 1; n > 0; --n) {
        *pixel = map[translate(translation, source[clamp(fraction >> FIXED_BITS, -3, LONGEST_POST)])];
        pixel += SCREEN_WIDTH;
        fraction = wrap_add(fraction, c.step);
    }
}

// Which neighbour each successive fuzzy pixel copies, darkened: bit i of the word is entry i of 50, set where the pixel
// below is read, clear where the one above is.
constexpr int FUZZ_ENTRIES = 50;
constexpr int FUZZ_DARKENING_MAP = 6;
constexpr uint64_t FUZZ_BELOW = 0x2de19af21ddb5ull;

// Rows of the view a fuzzy run touches: it stays away from the first and last row. False where nothing is left.
OFA_INLINE bool fuzz_rows(int& first, int& last) {
    if (first == 0) first = 1;
    if (last == VIEW_HEIGHT - 1) last = VIEW_HEIGHT - 2;
    return first <= last;
}

// Returns the fuzz position behind the run.
OFA_INLINE int draw_fuzz(uint8_t* frame, const uint8_t* colormaps, int x, int first, int last, int position) {
    const uint8_t* map = colormaps + 256 * FUZZ_DARKENING_MAP;
    uint8_t* pixel = frame + first * SCREEN_WIDTH + x;
    for (int n = last - first + 1; n > 0; --n) {
        *pixel = map[(FUZZ_BELOW >> position) & 1 ? pixel[SCREEN_WIDTH] : pixel[-SCREEN_WIDTH]];
        pixel += SCREEN_WIDTH;
        if (++position == FUZZ_ENTRIES) position = 0;
    }
    return position;
}

// A horizontal run of a plane. Positions in the 64 x 64 flat are packed into one word each way: 6 integer bits and 10
// of the fraction.
struct FlatRun {
    uint8_t* pixel;
    int n;
    const uint8_t *flat, *map;
    uint32_t position, step;
};

OFA_INLINE uint32_t packed_position(Fixed x, Fixed y) {
    return ((uint32_t(x) << 10) & 0xffff0000u) | ((uint32_t(y) >> 6) & 0xffffu);
}

OFA_INLINE uint32_t place_in_flat(uint32_t position) { return ((position >> 4) & 0xfc0u) | (position >> 26); }

OFA_INLINE void draw_flat_run(const FlatRun& run) {
    uint8_t* OFA_RESTRICT pixel = run.pixel;
    const uint8_t* OFA_RESTRICT flat = run.flat;
    const uint8_t* OFA_RESTRICT map = run.map;
    uint32_t position = run.position;
    const auto next = [&] {
        const uint8_t color = map[flat[place_in_flat(position)]];
        position += run.step;
        return color;
    };
    int n = run.n;
    for (; n >= 4; n -= 4, pixel += 4) {
        pixel[0] = next();
        pixel[1] = next();
        pixel[2] = next();
        pixel[3] = next();
    }
    for (; n > 0; --n) *pixel++ = next();
}

// The same for a thread that draws alone, in which every jump that cannot be foreseen costs more than ten pixels: all
// places come first, most in one go, and are looked up in eights; what is drawn behind the run's end is put back.
// `pixel` is not declared apart from the rest: a compiler that knew it would gather colours into vectors, byte by byte.
constexpr int RUN_BLOCK = 8, RUN_FIRST_PLACES = 64, RUN_LANES = 16;

OFA_INLINE void draw_flat_run_alone(const FlatRun& run, uint32_t* OFA_RESTRICT places) {
    for (uint32_t i = 0; i < RUN_FIRST_PLACES; ++i) places[i] = place_in_flat(run.position + i * run.step);
    if (run.n > RUN_FIRST_PLACES) {
        const uint32_t end = uint32_t(run.n + RUN_LANES - 1) / RUN_LANES * RUN_LANES;
        for (uint32_t i = RUN_FIRST_PLACES; i < end; ++i) places[i] = place_in_flat(run.position + i * run.step);
    }
    const uint8_t *flat = run.flat, *map = run.map;
    uint8_t* pixel = run.pixel;
    uint8_t* end = pixel + run.n;
    uint64_t behind;
    memcpy(&behind, end, RUN_BLOCK);
    for (; pixel < end; pixel += RUN_BLOCK, places += RUN_BLOCK) {
        pixel[0] = map[flat[places[0]]];
        pixel[1] = map[flat[places[1]]];
        pixel[2] = map[flat[places[2]]];
        pixel[3] = map[flat[places[3]]];
        pixel[4] = map[flat[places[4]]];
        pixel[5] = map[flat[places[5]]];
        pixel[6] = map[flat[places[6]]];
        pixel[7] = map[flat[places[7]]];
    }
    memcpy(end, &behind, RUN_BLOCK);
}

}  // namespace render
}  // namespace doom
