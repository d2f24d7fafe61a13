// Floors, ceilings and sky: areas are collected while walls are drawn, then cut into horizontal spans.
#pragma once

#include "pixels.h"
#include "view.h"

namespace doom {
namespace render {

OFA_INLINE int32_t start_plane(RenderScratch& s, Fixed height, int flat, int light, int first, int last) {
    const int32_t index = s.n_planes < MAX_PLANES ? s.n_planes++ : MAX_PLANES;
    Plane& plane = s.planes[index];
    plane.height = height;
    plane.flat = flat;
    plane.light = light;
    plane.first = first;
    plane.last = last;
    memset(plane.top, UNMARKED, sizeof plane.top);
    return index;
}

// The area of this height, flat and light; a new one where there is none yet. Sky is one area at any height and light.
OFA_FUNCTION int32_t find_plane(RenderScratch& s, const WadBlob& wad, Fixed height, int flat, int light) {
    if (flat == wad.sky_flat) height = light = 0;
    for (int i = 0; i < s.n_planes; ++i) {
        const Plane& plane = s.planes[i];
        if (plane.height == height && plane.flat == flat && plane.light == light) return i;
    }
    return start_plane(s, height, flat, light, VIEW_WIDTH, -1);
}

// Makes room in columns first..last: the area itself, or a new one like it where some of them are marked already.
OFA_FUNCTION int32_t extend_plane(RenderScratch& s, int32_t index, int first, int last) {
    Plane& plane = s.planes[index];
    const int both_last = min(plane.last, last);
    int x = max(plane.first, first);
    while (x <= both_last && plane.top[x + 1] == UNMARKED) ++x;
    if (x <= both_last) return start_plane(s, plane.height, plane.flat, plane.light, first, last);
    plane.first = min(plane.first, first);
    plane.last = max(plane.last, last);
    return index;
}

// Rows first..last of column x belong to the area. False when there are none.
OFA_INLINE bool mark_plane(Plane& plane, int x, int first, int last) {
    if (first > last) return false;
    plane.top[x + 1] = uint8_t(first);
    plane.bottom[x + 1] = uint8_t(last);
    return true;
}

// Calls emit(y, first, last) for every span of the area. A row's span goes on while neighbouring columns have the row.
template <class Emit>
OFA_INLINE void for_each_span(const Plane& plane, Emit emit) {
    int16_t start[VIEW_HEIGHT];
    int top1 = UNMARKED, bottom1 = 0;
    for (int x = plane.first; x <= plane.last + 1; ++x) {
        int top2 = UNMARKED, bottom2 = 0;
        if (x <= plane.last) {
            top2 = plane.top[x + 1];
            bottom2 = plane.bottom[x + 1];
        }
        const int next_top1 = top2, next_bottom1 = bottom2;
        while (top1 < top2 && top1 <= bottom1) {
            emit(top1, start[top1], x - 1);
            ++top1;
        }
        while (bottom1 > bottom2 && bottom1 >= top1) {
            emit(bottom1, start[bottom1], x - 1);
            --bottom1;
        }
        while (top2 < top1 && top2 <= bottom2) start[top2++] = int16_t(x);
        while (bottom2 > bottom1 && bottom2 >= top2) start[bottom2--] = int16_t(x);
        top1 = next_top1;
        bottom1 = next_bottom1;
    }
}

// Spans that for_each_span will find: each row of a column that the column before lacks starts one.
OFA_INLINE int count_spans(const Plane& plane) {
    int n = 0, top1 = UNMARKED, bottom1 = 0;
    for (int x = plane.first; x <= plane.last; ++x) {
        const int top2 = plane.top[x + 1];
        if (top2 == UNMARKED) {
            top1 = UNMARKED;
            continue;
        }
        const int bottom2 = plane.bottom[x + 1];
        n += bottom2 - top2 + 1;
        if (top1 != UNMARKED) n -= max(min(bottom1, bottom2) - max(top1, top2) + 1, 0);
        top1 = top2;
        bottom1 = bottom2;
    }
    return n;
}

// What the spans of an area share. Copies, because a pixel that is written may be part of anything but a local variable.
struct PlaneLook {
    Fixed height;                           // above or below the eye
    Fixed x, y, step_x, step_y;
    Angle angle;
    int32_t fixed_map;
    const uint8_t *flat, *maps, *colormaps;
    const int32_t *sine, *cosine;

    OFA_INLINE PlaneLook(const RenderScratch& s, const WadBlob& wad, const Plane& plane)
        : height(magnitude(wrap_sub(plane.height, s.view.z))), x(s.view.x), y(wrap_sub(0, s.view.y)),
          step_x(s.view.plane_step_x), step_y(s.view.plane_step_y), angle(s.view.angle), fixed_map(s.view.fixed_map),
          flat(at(wad, wad.flats) + 4096 * s.flat_shown[plane.flat]),
          maps(s.tables.plane_map[light_level(s.view, plane.light)]), colormaps(s.view.colormaps),
          sine(at(wad, wad.fine_sine)), cosine(sine + FINE_ANGLES / 4) {}
};

OFA_INLINE void draw_span(const ViewTables& t, uint8_t* frame, const PlaneLook& look, int y, int first, int last) {
    const Fixed away = fixed_mul(look.height, t.row_slope[y]);
    const Fixed length = fixed_mul(away, t.column_stretch[first]);
    const Angle angle = (look.angle + t.angle_of_x[first]) >> FINE_SHIFT;
    const Fixed x = wrap_add(look.x, fixed_mul(look.cosine[angle], length));
    const Fixed y_flat = wrap_sub(look.y, fixed_mul(look.sine[angle], length));
    int map = look.fixed_map;
    if (map == NO_FIXED_MAP) {
        const uint32_t step = uint32_t(away) >> 20;
        map = look.maps[step < PLANE_LIGHTS ? step : PLANE_LIGHTS - 1];
    }
    draw_plane_span(frame + y * SCREEN_WIDTH + first, last - first + 1, look.flat, look.colormaps + 256 * map, x, y_flat,
                    fixed_mul(away, look.step_x), fixed_mul(away, look.step_y));
}

// The sky is a wall without perspective, always at full brightness; four of its textures make the circle.
OFA_INLINE void draw_sky_column(const RenderScratch& s, const WadBlob& wad, uint8_t* frame, const Plane& plane, int x) {
    if (plane.top[x + 1] > plane.bottom[x + 1] || plane.top[x + 1] == UNMARKED) return;
    const Texture& t = s.view.textures[s.view.sky];
    const uint32_t column = (s.view.angle + s.tables.angle_of_x[x]) >> 22;
    Column c;
    c.source = at(wad, t.columns)[column & t.width_mask];
    c.first = plane.top[x + 1];
    c.last = plane.bottom[x + 1];
    c.x = int16_t(x);
    c.step = UNIT;
    c.fraction = SCREEN_HEIGHT / 2 * UNIT + (c.first - CENTER_Y) * UNIT;
    c.map = 0;
    draw_column(frame, wad, s.view.colormaps, c);
}

// One thread, in order: where there is but one, in the rare frame where areas share pixels, and for more spans than the
// list holds.
OFA_NOINLINE void draw_planes_in_order(const RenderScratch& s, const WadBlob& wad, uint8_t* frame) {
    for (int i = 0; i < s.n_planes; ++i) {
        const Plane& plane = s.planes[i];
        if (plane.flat == wad.sky_flat) {
            for (int x = plane.first; x <= plane.last; ++x) draw_sky_column(s, wad, frame, plane, x);
            continue;
        }
        const PlaneLook look(s, wad, plane);
        for_each_span(plane, [&](int y, int first, int last) { draw_span(s.tables, frame, look, y, first, last); });
    }
}

// All threads count the spans of each area, give each its part of the list, fill it and draw it.
template <class Block>
OFA_FUNCTION void draw_planes(Block& block, RenderScratch& s, const WadBlob& wad, uint8_t* frame) {
    if (block.threads() == 1) {
        draw_planes_in_order(s, wad, frame);
        return;
    }
    const int n = s.n_planes;
    block.for_each(n, [&](int64_t i) {
        const Plane& plane = s.planes[i];
        s.first_span[i + 1] = plane.flat == wad.sky_flat ? 0 : count_spans(plane);
    });
    block.sync();
    if (block.leader()) {
        s.first_span[0] = 0;
        for (int i = 0; i < n; ++i) s.first_span[i + 1] += s.first_span[i];
        if (s.planes_overlap || s.first_span[n] > MAX_SPANS) draw_planes_in_order(s, wad, frame);
    }
    block.sync();
    if (s.planes_overlap || s.first_span[n] > MAX_SPANS) return;

    block.for_each(n, [&](int64_t i) {
        const Plane& plane = s.planes[i];
        if (plane.flat == wad.sky_flat) return;
        PlaneSpan* out = s.spans + s.first_span[i];
        for_each_span(plane, [&](int y, int first, int last) {
            *out++ = {int16_t(first), int16_t(last), uint8_t(y), uint8_t(i)};
        });
    });
    block.sync();
    block.for_each(s.first_span[n], [&](int64_t i) {
        const PlaneSpan& span = s.spans[i];
        draw_span(s.tables, frame, PlaneLook(s, wad, s.planes[span.plane]), span.y, span.first, span.last);
    });
    for (int i = 0; i < n; ++i) {
        const Plane& plane = s.planes[i];
        if (plane.flat != wad.sky_flat) continue;
        block.for_each(plane.last - plane.first + 1,
                       [&](int64_t k) { draw_sky_column(s, wad, frame, plane, plane.first + int(k)); });
    }
}

}  // namespace render
}  // namespace doom
