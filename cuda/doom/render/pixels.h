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
    int n = c.last - c.first + 1;
    for (; n >= 8; n -= 8, pixel += 8 * SCREEN_WIDTH) {
        pixel[0 * SCREEN_WIDTH] = next();
        pixel[1 * SCREEN_WIDTH] = next();
        pixel[2 * SCREEN_WIDTH] = next();
        pixel[3 * SCREEN_WIDTH] = next();
        pixel[4 * SCREEN_WIDTH] = next();
        pixel[5 * SCREEN_WIDTH] = next();
        pixel[6 * SCREEN_WIDTH] = next();
        pixel[7 * SCREEN_WIDTH] = next();
    }
    for (; n > 0; --n, pixel += SCREEN_WIDTH) *pixel = next();
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

// Positions in the 64 x 64 flat are packed into one word each way: 6 integer bits and 10 of the fraction.
OFA_INLINE void draw_plane_span(uint8_t* OFA_RESTRICT pixel, int n, const uint8_t* OFA_RESTRICT flat,
                                const uint8_t* OFA_RESTRICT map, Fixed x, Fixed y, Fixed step_x, Fixed step_y) {
    uint32_t position = ((uint32_t(x) << 10) & 0xffff0000u) | ((uint32_t(y) >> 6) & 0xffffu);
    const uint32_t step = ((uint32_t(step_x) << 10) & 0xffff0000u) | ((uint32_t(step_y) >> 6) & 0xffffu);
    const auto next = [&] {
        const uint8_t color = map[flat[((position >> 4) & 0xfc0u) | (position >> 26)]];
        position += step;
        return color;
    };
    for (; n >= 4; n -= 4, pixel += 4) {
        pixel[0] = next();
        pixel[1] = next();
        pixel[2] = next();
        pixel[3] = next();
    }
    for (; n > 0; --n) *pixel++ = next();
}

}  // namespace render
}  // namespace doom
