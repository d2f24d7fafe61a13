// Walls: one visible piece of a seg after another, front to back. A piece closes rows of its columns for what lies
// behind, marks floor and ceiling areas, and leaves what sprites need to be clipped.
#pragma once

#include "pixels.h"
#include "planes.h"
#include "view.h"

namespace doom {
namespace render {

// Scale of a wall in the direction `angle`, for a wall at distance `wall_distance` along its normal.
OFA_INLINE Fixed wall_scale(const View& v, const WadBlob& wad, Angle angle, Angle normal, Fixed wall_distance) {
    const Fixed sine_view = fine_sine(wad, ANGLE_90 + (angle - v.angle));
    const Fixed sine_wall = fine_sine(wad, ANGLE_90 + (angle - normal));
    const Fixed numerator = fixed_mul(CENTER_X * UNIT, sine_wall);
    const Fixed denominator = fixed_mul(wall_distance, sine_view);
    if (denominator <= numerator >> FIXED_BITS) return 64 * UNIT;
    return clamp(fixed_div(numerator, denominator), 256, 64 * UNIT);
}

// What the columns of one piece share.
struct WallPiece {
    int first, last;
    Fixed scale, scale_step;
    // screen rows of edges in 20.12: at the first column, and per column
    Fixed top, top_step, bottom, bottom_step, high, high_step, low, low_step;
    int32_t middle, upper, lower;           // textures, 0 = none
    Fixed middle_row, upper_row, lower_row; // texture row at eye height
    bool masked, mark_floor, mark_ceiling;
    // horizontal texture position: tangent of the angle to the normal times the distance
    Angle center_angle;
    Fixed wall_distance, texture_offset;
    int light;
    int32_t masked_columns;
};

constexpr int ROW_BITS = 12;
constexpr Fixed ROW_ONE = 1 << ROW_BITS;

// Row of a height at the first column, and its change per column. Heights are relative to the eye.
OFA_INLINE void project_edge(const WallPiece& p, Fixed height, Fixed& row, Fixed& step) {
    step = wrap_sub(0, fixed_mul(p.scale_step, height >> 4));
    row = wrap_sub((CENTER_Y * UNIT) >> 4, fixed_mul(height >> 4, p.scale));
}

// A wall at a grazing angle can ask for tangents beyond 90 degrees; what follows the table there is the sine table.
OFA_INLINE bool is_beyond_tangents(Angle angle) { return angle >> FINE_SHIFT >= FINE_HALF; }

// Columns of a piece for which that happens. Both ends are less than half a circle apart.
OFA_INLINE int count_tangents_beyond(const RenderScratch& s, const WallPiece& p) {
    const auto beyond = [&](int x) { return is_beyond_tangents(p.center_angle + s.tables.angle_of_x[x]); };
    if (!beyond(p.first) && !beyond(p.last)) return 0;
    int n = 0;
    for (int x = p.first; x <= p.last; ++x) n += beyond(x);
    return n;
}

struct TextureColumns {
    const uint32_t* columns;
    uint32_t width_mask;
};

OFA_INLINE TextureColumns texture_columns(const RenderScratch& s, const WadBlob& wad, int32_t number) {
    if (!number) return {nullptr, 0};
    const Texture& t = s.view.textures[s.texture_shown[number]];
    return {at(wad, t.columns), t.width_mask};
}

// Where a piece gets its pixels and marks its areas. Copies, because a pixel that is written may be part of anything
// but a local variable.
struct PieceLook {
    TextureColumns middle, upper, lower;
    const Angle* angle_of_x;
    const int32_t *tangent, *sine;
    const uint8_t *maps, *colormaps;
    int32_t fixed_map, column_limit;
    uint8_t *ceiling_top, *ceiling_bottom, *floor_top, *floor_bottom;

    OFA_INLINE PieceLook(RenderScratch& s, const WadBlob& wad, const WallPiece& p)
        : middle(texture_columns(s, wad, p.middle)), upper(texture_columns(s, wad, p.upper)),
          lower(texture_columns(s, wad, p.lower)), angle_of_x(s.tables.angle_of_x), tangent(at(wad, wad.fine_tangent)),
          sine(at(wad, wad.fine_sine)), maps(s.tables.wall_map[p.light]), colormaps(s.view.colormaps),
          fixed_map(s.view.fixed_map), column_limit(s.column_limit) {
        Plane& ceiling = s.planes[p.mark_ceiling ? s.ceiling_plane : 0];
        Plane& floor = s.planes[p.mark_floor ? s.floor_plane : 0];
        ceiling_top = ceiling.top + 1;
        ceiling_bottom = ceiling.bottom + 1;
        floor_top = floor.top + 1;
        floor_bottom = floor.bottom + 1;
    }
};

// Where a column of the screen meets the wall's textures.
struct TexturePlace {
    int column;
    Fixed step;                             // texture rows per screen row
    int map;
};

OFA_INLINE int texture_column(const PieceLook& look, const WallPiece& p, int x) {
    const Angle angle = p.center_angle + look.angle_of_x[x];
    const uint32_t i = angle >> FINE_SHIFT;
    const Fixed tangent = is_beyond_tangents(angle) ? look.sine[i - FINE_HALF] : look.tangent[i];
    return wrap_sub(p.texture_offset, fixed_mul(tangent, p.wall_distance)) >> FIXED_BITS;
}

OFA_INLINE TexturePlace place_texture(const PieceLook& look, const WallPiece& p, int x) {
    const uint32_t step = uint32_t(p.scale) >> 12;
    int map = look.maps[step < WALL_LIGHTS ? step : WALL_LIGHTS - 1];
    if (look.fixed_map != NO_FIXED_MAP) map = look.fixed_map;
    return {texture_column(look, p, x), Fixed(0xffffffffu / uint32_t(p.scale)), map};
}

OFA_INLINE void add_column(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const PieceLook& look,
                           TextureColumns texture, TexturePlace place, int x, int first, int last, Fixed texture_row) {
    Column c;
    c.source = texture.columns[uint32_t(place.column) & texture.width_mask];
    c.step = place.step;
    c.fraction = wrap_add(texture_row, wrap_mul(place.step, first - CENTER_Y));
    c.x = int16_t(x);
    c.first = uint8_t(first);
    c.last = uint8_t(last);
    c.map = uint8_t(place.map);
    if (s.n_columns < look.column_limit) s.columns[s.n_columns++] = c;
    else draw_column(frame, wad, look.colormaps, c);
}

// The rows of a column that are open and what floor and ceiling take of them.
struct OpenRows {
    int above, below;                       // clips
    int top, bottom;                        // of the wall between them
};

OFA_INLINE OpenRows open_column(RenderScratch& s, const PieceLook& look, const WallPiece& p, int x) {
    OpenRows r;
    r.above = s.ceiling_clip[x];
    r.below = s.floor_clip[x];
    r.top = max(wrap_add(p.top, ROW_ONE - 1) >> ROW_BITS, r.above + 1);
    r.bottom = min(p.bottom >> ROW_BITS, r.below - 1);
    int marked_to = -1;
    if (p.mark_ceiling) {
        const int first = r.above + 1, last = min(r.top, r.below) - 1;
        if (first <= last) {
            look.ceiling_top[x] = uint8_t(first);
            look.ceiling_bottom[x] = uint8_t(last);
            marked_to = last;
        }
    }
    if (p.mark_floor) {
        const int first = max(r.bottom, r.above) + 1, last = r.below - 1;
        if (first <= last) {
            look.floor_top[x] = uint8_t(first);
            look.floor_bottom[x] = uint8_t(last);
            if (first <= marked_to) s.planes_overlap = 1;
        }
    }
    return r;
}

// The wall fills the column from floor to ceiling and closes it.
OFA_INLINE void draw_solid_column(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const PieceLook& look,
                                  const WallPiece& p, int x) {
    const OpenRows r = open_column(s, look, p, x);
    if (r.top <= r.bottom)
        add_column(s, wad, frame, look, look.middle, place_texture(look, p, x), x, r.top, r.bottom, p.middle_row);
    s.ceiling_clip[x] = VIEW_HEIGHT;
    s.floor_clip[x] = -1;
}

// What shows above and below the opening narrows the column; a masked texture is left for later.
OFA_INLINE void draw_open_column(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const PieceLook& look,
                                 const WallPiece& p, int x) {
    const OpenRows r = open_column(s, look, p, x);
    const int upper_end = min(p.high >> ROW_BITS, r.below - 1);
    const bool upper = p.upper && upper_end >= r.top;
    int ceiling_clip = r.above;
    if (p.upper || p.mark_ceiling) ceiling_clip = upper ? upper_end : min(r.top - 1, VIEW_HEIGHT);

    const int lower_start = max(wrap_add(p.low, ROW_ONE - 1) >> ROW_BITS, ceiling_clip + 1);
    const bool lower = p.lower && lower_start <= r.bottom;
    int floor_clip = r.below;
    if (p.lower || p.mark_floor) floor_clip = lower ? lower_start : max(r.bottom + 1, -1);

    s.ceiling_clip[x] = int16_t(ceiling_clip);
    s.floor_clip[x] = int16_t(floor_clip);
    if (upper || lower) {
        const TexturePlace place = place_texture(look, p, x);
        if (upper) add_column(s, wad, frame, look, look.upper, place, x, r.top, upper_end, p.upper_row);
        if (lower) add_column(s, wad, frame, look, look.lower, place, x, lower_start, r.bottom, p.lower_row);
    }
    if (p.masked) s.openings[p.masked_columns + x] = int16_t(texture_column(look, p, x));
}

// By value: pixels are bytes, and a byte that is written may be part of anything but a local variable.
OFA_NOINLINE void draw_piece(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const WallPiece& piece) {
    WallPiece p = piece;
    const PieceLook look(s, wad, p);
    const auto step = [&] {
        p.scale = wrap_add(p.scale, p.scale_step);
        p.top = wrap_add(p.top, p.top_step);
        p.bottom = wrap_add(p.bottom, p.bottom_step);
    };
    if (p.middle) {
        for (int x = p.first; x <= p.last; ++x, step()) draw_solid_column(s, wad, frame, look, p, x);
        return;
    }
    for (int x = p.first; x <= p.last; ++x, step()) {
        draw_open_column(s, wad, frame, look, p, x);
        p.high = wrap_add(p.high, p.high_step);
        p.low = wrap_add(p.low, p.low_step);
    }
}

// Room for one value per column of first..last; the result is indexed by column.
OFA_INLINE int32_t take_openings(RenderScratch& s, int first, int last) {
    const int32_t offset = s.n_openings - first;
    s.n_openings += last - first + 1;
    return offset;
}

OFA_INLINE int32_t save_clip(RenderScratch& s, const int16_t* clip, int first, int last) {
    const int32_t offset = take_openings(s, first, last);
    for (int x = first; x <= last; ++x) s.openings[offset + x] = clip[x];
    return offset;
}

// Columns first..last of a seg are visible. `angle_v1` is the direction of its first vertex.
OFA_NOINLINE void draw_wall(RenderScratch& s, Game& game, const WadBlob& wad, uint8_t* frame, int32_t seg_index,
                            Angle angle_v1, int first, int last) {
    if (s.n_draw_segs == MAX_DRAW_SEGS || s.n_openings + 3 * (last - first + 1) > MAX_OPENINGS) return;
    const View& v = s.view;
    const MapSeg& seg = v.segs[seg_index];
    Line& line = game.lines[seg.line];
    const Side& side = game.sides[seg.side];
    const Sector& front = game.sectors[seg.front];
    line.flags |= LINE_MAPPED;

    WallPiece p;
    p.first = first;
    p.last = last;
    const Angle normal = seg.angle + ANGLE_90;
    const MapVertex& v1 = v.vertices[seg.v1];
    const Fixed hypotenuse = distance(wad, wrap_sub(v1.x, v.x), wrap_sub(v1.y, v.y));
    {
        Angle off = Angle(magnitude(Fixed(normal - angle_v1)));
        if (off > ANGLE_90) off = ANGLE_90;
        p.wall_distance = fixed_mul(hypotenuse, fine_sine(wad, ANGLE_90 - off));
    }

    DrawSeg& d = s.draw_segs[s.n_draw_segs];
    d.seg = seg_index;
    d.first = first;
    d.last = last;
    d.scale_first = d.scale_last = wall_scale(v, wad, v.angle + s.tables.angle_of_x[first], normal, p.wall_distance);
    d.scale_step = 0;
    if (last > first) {
        d.scale_last = wall_scale(v, wad, v.angle + s.tables.angle_of_x[last], normal, p.wall_distance);
        d.scale_step = (d.scale_last - d.scale_first) / (last - first);
    }
    p.scale = d.scale_first;
    p.scale_step = d.scale_step;

    Fixed top = wrap_sub(front.ceiling_height, v.z);
    const Fixed bottom = wrap_sub(front.floor_height, v.z);
    Fixed high = 0, low = 0;
    p.middle = p.upper = p.lower = 0;
    p.middle_row = p.upper_row = p.lower_row = 0;
    p.high = p.high_step = p.low = p.low_step = 0;
    p.masked = false;
    p.light = 0;
    p.masked_columns = NONE;
    d.masked_columns = d.top_clip = d.bottom_clip = NONE;
    d.silhouette = 0;
    d.bottom_height = d.top_height = 0;

    if (seg.back < 0) {
        p.middle = side.middle;
        p.mark_floor = p.mark_ceiling = true;
        p.middle_row = top;
        if (line.flags & LINE_PEG_BOTTOM) p.middle_row = wrap_add(bottom, v.textures[side.middle].height * UNIT);
        p.middle_row = wrap_add(p.middle_row, side.y_offset);
        d.silhouette = SILHOUETTE_BOTH;
        d.top_clip = OPENING_VIEW_HEIGHT;
        d.bottom_clip = OPENING_MINUS_ONE;
        d.bottom_height = FIXED_MAX;
        d.top_height = FIXED_MIN;
    } else {
        const Sector& back = game.sectors[seg.back];
        if (front.floor_height > back.floor_height) {
            d.silhouette = SILHOUETTE_BOTTOM;
            d.bottom_height = front.floor_height;
        } else if (back.floor_height > v.z) {
            d.silhouette = SILHOUETTE_BOTTOM;
            d.bottom_height = FIXED_MAX;
        }
        if (front.ceiling_height < back.ceiling_height) {
            d.silhouette |= SILHOUETTE_TOP;
            d.top_height = front.ceiling_height;
        } else if (back.ceiling_height < v.z) {
            d.silhouette |= SILHOUETTE_TOP;
            d.top_height = FIXED_MIN;
        }
        const bool closed_below = back.ceiling_height <= front.floor_height;
        const bool closed_above = back.floor_height >= front.ceiling_height;
        if (closed_below) {
            d.bottom_clip = OPENING_MINUS_ONE;
            d.bottom_height = FIXED_MAX;
            d.silhouette |= SILHOUETTE_BOTTOM;
        }
        if (closed_above) {
            d.top_clip = OPENING_VIEW_HEIGHT;
            d.top_height = FIXED_MIN;
            d.silhouette |= SILHOUETTE_TOP;
        }

        high = wrap_sub(back.ceiling_height, v.z);
        low = wrap_sub(back.floor_height, v.z);
        // no wall between two skies of different height
        if (front.ceiling_flat == wad.sky_flat && back.ceiling_flat == wad.sky_flat) top = high;
        const bool closed = closed_below || closed_above;
        p.mark_floor = closed || low != bottom || back.floor_flat != front.floor_flat || back.light != front.light;
        p.mark_ceiling = closed || high != top || back.ceiling_flat != front.ceiling_flat || back.light != front.light;
        if (high < top) {
            p.upper = side.top;
            p.upper_row = top;
            if (!(line.flags & LINE_PEG_TOP)) p.upper_row = wrap_add(high, v.textures[side.top].height * UNIT);
        }
        if (low > bottom) {
            p.lower = side.bottom;
            p.lower_row = line.flags & LINE_PEG_BOTTOM ? top : low;
        }
        p.upper_row = wrap_add(p.upper_row, side.y_offset);
        p.lower_row = wrap_add(p.lower_row, side.y_offset);
        if (side.middle) {
            p.masked = true;
            p.masked_columns = d.masked_columns = take_openings(s, first, last);
        }
    }

    if (p.middle || p.upper || p.lower || p.masked) {
        Angle off = normal - angle_v1;
        const bool mirrored = off < ANGLE_180;
        if (off > ANGLE_180) off = 0u - off;
        if (off > ANGLE_90) off = ANGLE_90;
        p.texture_offset = fixed_mul(hypotenuse, fine_sine(wad, off));
        if (mirrored) p.texture_offset = wrap_sub(0, p.texture_offset);
        p.texture_offset = wrap_add(p.texture_offset, wrap_add(side.x_offset, seg.offset));
        p.center_angle = ANGLE_90 + v.angle - normal;
        p.light = wall_light_level(v, seg, front.light);
        s.n_tangents_beyond += count_tangents_beyond(s, p);
    }

    if (front.floor_height >= v.z) p.mark_floor = false;
    if (front.ceiling_height <= v.z && front.ceiling_flat != wad.sky_flat) p.mark_ceiling = false;

    project_edge(p, top, p.top, p.top_step);
    project_edge(p, bottom, p.bottom, p.bottom_step);
    if (seg.back >= 0) {
        if (high >> 4 < top >> 4) project_edge(p, high, p.high, p.high_step);
        if (low >> 4 > bottom >> 4) project_edge(p, low, p.low, p.low_step);
    }

    // Without an area to mark: the subsector's sector, by its first seg, is not the one that this seg faces.
    if (s.ceiling_plane == NONE) p.mark_ceiling = false;
    if (s.floor_plane == NONE) p.mark_floor = false;
    if (p.mark_ceiling) s.ceiling_plane = extend_plane(s, s.ceiling_plane, first, last);
    if (p.mark_floor) s.floor_plane = extend_plane(s, s.floor_plane, first, last);

    draw_piece(s, wad, frame, p);

    if (((d.silhouette & SILHOUETTE_TOP) || p.masked) && d.top_clip == NONE)
        d.top_clip = save_clip(s, s.ceiling_clip, first, last);
    if (((d.silhouette & SILHOUETTE_BOTTOM) || p.masked) && d.bottom_clip == NONE)
        d.bottom_clip = save_clip(s, s.floor_clip, first, last);
    if (p.masked && !(d.silhouette & SILHOUETTE_TOP)) {
        d.silhouette |= SILHOUETTE_TOP;
        d.top_height = FIXED_MIN;
    }
    if (p.masked && !(d.silhouette & SILHOUETTE_BOTTOM)) {
        d.silhouette |= SILHOUETTE_BOTTOM;
        d.bottom_height = FIXED_MAX;
    }
    ++s.n_draw_segs;
}

}  // namespace render
}  // namespace doom
