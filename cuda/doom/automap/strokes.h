// Straight lines on the screen: cut to the view by integers alone, so that every machine draws the same pixels.
#pragma once

#include "../render/scratch.h"

namespace doom {
namespace automap {

constexpr int WIDTH = render::VIEW_WIDTH, HEIGHT = render::VIEW_HEIGHT;
constexpr int PART_BITS = 4;                // a place on the screen is in sixteenths of a pixel
constexpr int64_t PART = 1 << PART_BITS;

struct Place {
    int64_t x, y;
};

// A line of pixels inside the view, ends included. Color 0 stands for no line.
struct Stroke {
    int16_t x0, y0, x1, y1;
    uint8_t color;
};

enum Outside : int { OUTSIDE_LEFT = 1, OUTSIDE_RIGHT = 2, OUTSIDE_TOP = 4, OUTSIDE_BOTTOM = 8 };
constexpr int64_t LAST_X = WIDTH * PART - 1, LAST_Y = HEIGHT * PART - 1;

OFA_INLINE int outside(const Place& p) {
    return (p.x < 0 ? OUTSIDE_LEFT : p.x > LAST_X ? OUTSIDE_RIGHT : 0) |
           (p.y < 0 ? OUTSIDE_TOP : p.y > LAST_Y ? OUTSIDE_BOTTOM : 0);
}

// Moves `a` along the line to `b` onto the edge of the view that it lies beyond.
OFA_INLINE void cut(Place& a, const Place& b, int side) {
    if (side & (OUTSIDE_LEFT | OUTSIDE_RIGHT)) {
        const int64_t x = side & OUTSIDE_LEFT ? 0 : LAST_X;
        a.y += (b.y - a.y) * (x - a.x) / (b.x - a.x);
        a.x = x;
    } else {
        const int64_t y = side & OUTSIDE_TOP ? 0 : LAST_Y;
        a.x += (b.x - a.x) * (y - a.y) / (b.y - a.y);
        a.y = y;
    }
}

// The part of the line from `a` to `b` that the view shows. Two cuts of either end are enough.
OFA_FUNCTION Stroke stroke_between(Place a, Place b, uint8_t color) {
    for (int cuts = 0; cuts < 4; ++cuts) {
        const int at_a = outside(a), at_b = outside(b);
        if (at_a & at_b) break;
        if (at_a) cut(a, b, at_a);
        else if (at_b) cut(b, a, at_b);
        else break;
    }
    if (outside(a) || outside(b)) return {};
    return {int16_t(a.x >> PART_BITS), int16_t(a.y >> PART_BITS), int16_t(b.x >> PART_BITS), int16_t(b.y >> PART_BITS),
            color};
}

// The pixels of a stroke in columns first..last. Which pixels they are does not depend on the columns asked for.
OFA_FUNCTION void draw_stroke(uint8_t* frame, Stroke s, int first, int last) {
    constexpr int HALF = 1 << 15;
    const int across = s.x1 - s.x0, down = s.y1 - s.y0;
    const bool flat = (across < 0 ? -across : across) >= (down < 0 ? -down : down);
    if (flat ? across < 0 : down < 0) s = {s.x1, s.y1, s.x0, s.y0, s.color};
    const int length = flat ? s.x1 - s.x0 : s.y1 - s.y0;
    const int slope = length == 0 ? 0 : (flat ? s.y1 - s.y0 : s.x1 - s.x0) * 65536 / length;
    if (flat) {
        for (int x = first > s.x0 ? first : s.x0; x <= s.x1 && x <= last; ++x)
            frame[(s.y0 + ((slope * (x - s.x0) + HALF) >> 16)) * render::SCREEN_WIDTH + x] = s.color;
    } else {
        for (int y = s.y0; y <= s.y1; ++y) {
            const int x = s.x0 + ((slope * (y - s.y0) + HALF) >> 16);
            if (x >= first && x <= last) frame[y * render::SCREEN_WIDTH + x] = s.color;
        }
    }
}

}  // namespace automap
}  // namespace doom
