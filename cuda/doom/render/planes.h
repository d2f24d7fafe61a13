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
    const uint32_t mixed = (uint32_t(height) >> FIXED_BITS) * 7 + uint32_t(flat) * 31 + uint32_t(light);
    int16_t& chain = s.plane_chains[mixed % PLANE_CHAINS];
    for (int i = chain; i != NONE; i = s.planes[i].next) {
        const Plane& plane = s.planes[i];
        if (plane.height == height && plane.flat == flat && plane.light == light) return i;
    }
    const int32_t index = start_plane(s, height, flat, light, VIEW_WIDTH, -1);
    if (index < MAX_PLANES) {
        s.planes[index].next = chain;
        chain = int16_t(index);
    }
    return index;
}

// Makes room in columns first..last: the area itself, or a new one like it where some of them are marked already.
OFA_FUNCTION int32_t extend_plane(RenderScratch& s, int32_t index, int first, int last) {
    Plane& plane = s.planes[index];
    const int both_last = min(plane.last, last);
    uint8_t all = UNMARKED;
    for (int x = max(plane.first, first); x <= both_last; ++x) all &= plane.top[x + 1];
    if (all != UNMARKED) return start_plane(s, plane.height, plane.flat, plane.light, first, last);
    plane.first = min(plane.first, first);
    plane.last = max(plane.last, last);
    return index;
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
        for (; top1 < top2 && top1 <= bottom1; ++top1) emit(top1, start[top1], x - 1);
        for (; bottom1 > bottom2 && bottom1 >= top1; --bottom1) emit(bottom1, start[bottom1], x - 1);
        for (; top2 < top1 && top2 <= bottom2; ++top2) start[top2] = int16_t(x);
        for (; bottom2 > bottom1 && bottom2 >= top2; --bottom2) start[bottom2] = int16_t(x);
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

OFA_INLINE FlatRun project_span(const ViewTables& t, uint8_t* frame, const PlaneLook& look, int y, int first,
                                int last) {
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
    return {frame + y * SCREEN_WIDTH + first, last - first + 1, look.flat, look.colormaps + 256 * map,
            packed_position(x, y_flat), packed_position(fixed_mul(away, look.step_x), fixed_mul(away, look.step_y))};
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

// What follows is for a thread that draws alone, in which a jump that cannot be foreseen costs as much as many pixels.
// An edge of an area moves a row or two from column to column, so the first spans of each edge are written whether they
// end here or not, and only what is more needs a loop.
OFA_INLINE PlaneSpan* end_spans(const int16_t* start, int top, int end, int x, PlaneSpan* out) {
    const auto span = [&](int y) { return PlaneSpan{start[y], int16_t(x - 1), uint8_t(y), 0}; };
    for (int i = 0; i < SPARE_SPANS; ++i) out[i] = span(top + i);
    for (int i = SPARE_SPANS; i < end - top; ++i) out[i] = span(top + i);
    return out + (end - top);
}

// Rows [old_top, old_end) of the column before column x are followed by rows [top, end); both may be empty. Returns the
// end of the list, behind which SPARE_SPANS are written.
OFA_INLINE PlaneSpan* step_spans(int16_t* start, int old_top, int old_end, int top, int end, int x, PlaneSpan* out) {
    const int kept_top = min(max(top, old_top), old_end);
    out = end_spans(start, old_top, kept_top, x, out);
    out = end_spans(start, max(min(end, old_end), kept_top), old_end, x, out);

    // a start may be written to any row that has no span
    const int known_top = min(max(old_top, top), end), known_end = max(min(old_end, end), known_top);
    for (int i = 1; i <= SPARE_SPANS; ++i) start[known_top - i] = int16_t(x);
    for (int y = known_top - SPARE_SPANS - 1; y >= top; --y) start[y] = int16_t(x);
    for (int i = 0; i < SPARE_SPANS; ++i) start[known_end + i] = int16_t(x);
    for (int y = known_end + SPARE_SPANS; y < end; ++y) start[y] = int16_t(x);
    return out;
}

// Columns first..last + 1 whose rows are not those of the column before; returns how many.
OFA_INLINE int find_edges(const Plane& plane, int16_t* edges) {
    int n = 0;
    uint8_t top = UNMARKED, bottom = 0;
    for (int x = plane.first; x <= plane.last + 1; ++x) {
        edges[n] = int16_t(x);
        n += (plane.top[x + 1] != top) | (plane.bottom[x + 1] != bottom);
        top = plane.top[x + 1];
        bottom = plane.bottom[x + 1];
    }
    return n;
}

OFA_NOINLINE void draw_area(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const Plane& plane) {
    const PlaneLook look(s, wad, plane);
    PlaneSpan* out = s.spans;
    const auto draw = [&] {
        for (const PlaneSpan* span = s.spans; span < out; ++span)
            draw_flat_run_alone(project_span(s.tables, frame, look, span->y, span->first, span->last), s.places);
        out = s.spans;
    };
    int old_top = UNMARKED, old_end = UNMARKED;
    const int n_edges = find_edges(plane, s.edges);
    for (int i = 0; i < n_edges; ++i) {
        const int x = s.edges[i];
        const int top = plane.top[x + 1];
        const int end = top == UNMARKED ? UNMARKED : plane.bottom[x + 1] + 1;
        out = step_spans(s.starts + SPARE_SPANS, old_top, old_end, top, end, x, out);
        old_top = top;
        old_end = end;
        if (out > s.spans + MAX_SPANS - 2 * VIEW_HEIGHT) draw();
    }
    draw();
}

// One thread, in order: where there is but one, in the rare frame where areas share pixels, and for more spans than the
// list holds.
OFA_NOINLINE void draw_planes_in_order(RenderScratch& s, const WadBlob& wad, uint8_t* frame) {
    for (int i = 0; i < s.n_planes; ++i) {
        const Plane& plane = s.planes[i];
        if (plane.flat == wad.sky_flat) {
            for (int x = plane.first; x <= plane.last; ++x) draw_sky_column(s, wad, frame, plane, x);
            continue;
        }
        draw_area(s, wad, frame, plane);
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
        const PlaneLook look(s, wad, s.planes[span.plane]);
        draw_flat_run(project_span(s.tables, frame, look, span.y, span.first, span.last));
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
