// Projection tables, and what a frame starts with.
#pragma once

#include "scratch.h"

namespace doom {
namespace render {

// A quarter circle fills the view: its half-width belongs to a tangent of 1, in the precision of the tangent table.
OFA_FUNCTION void build_angle_tables(ViewTables& t, const WadBlob& wad) {
    const int32_t* tangent = at(wad, wad.fine_tangent);
    const Fixed center = CENTER_X * UNIT;
    const Fixed focal_length = fixed_div(center, tangent[FINE_HALF / 2 + FINE_HALF / 4]);
    for (int i = 0; i < FINE_HALF; ++i) {
        int x;
        if (tangent[i] > 2 * UNIT) x = -1;
        else if (tangent[i] < -2 * UNIT) x = VIEW_WIDTH + 1;
        else x = clamp((center - fixed_mul(tangent[i], focal_length) + UNIT - 1) >> FIXED_BITS, -1, VIEW_WIDTH + 1);
        t.x_of_angle[i] = uint16_t(x + 1);  // shifted by one until the inverse is built
    }
    for (int x = 0; x <= VIEW_WIDTH; ++x) {
        int i = 0;
        while (t.x_of_angle[i] > x + 1) ++i;
        t.angle_of_x[x] = (Angle(i) << FINE_SHIFT) - ANGLE_90;
    }
    for (int i = 0; i < FINE_HALF; ++i) t.x_of_angle[i] = uint16_t(clamp(t.x_of_angle[i] - 1, 0, VIEW_WIDTH));
    t.clip_angle = t.angle_of_x[0];
}

OFA_FUNCTION void build_plane_tables(ViewTables& t, const WadBlob& wad) {
    for (int y = 0; y < VIEW_HEIGHT; ++y) {
        const Fixed from_center = magnitude((y - CENTER_Y) * UNIT + UNIT / 2);
        t.row_slope[y] = fixed_div(CENTER_X * UNIT, from_center);
    }
    for (int x = 0; x < VIEW_WIDTH; ++x)
        t.column_stretch[x] = fixed_div(UNIT, magnitude(fine_cosine(wad, t.angle_of_x[x])));
}

// Colormap by light level and distance: brighter levels start at a lower map, and a map lasts two steps of scale.
OFA_FUNCTION void build_light_tables(ViewTables& t) {
    for (int level = 0; level < LIGHT_LEVELS; ++level) {
        const int start = (LIGHT_LEVELS - 1 - level) * 2 * COLORMAPS / LIGHT_LEVELS;
        for (int step = 0; step < PLANE_LIGHTS; ++step) {
            const int scale = fixed_div(CENTER_X * UNIT, Fixed(step + 1) << 20) >> 12;
            t.plane_map[level][step] = uint8_t(clamp(start - scale / 2, 0, COLORMAPS - 1));
        }
        for (int step = 0; step < WALL_LIGHTS; ++step)
            t.wall_map[level][step] = uint8_t(clamp(start - step / 2, 0, COLORMAPS - 1));
    }
}

// Whether the bar's background covers all of it.
OFA_FUNCTION bool bar_is_solid(const WadBlob& wad) {
    const int32_t number = at(wad, wad.graphics)[GRAPHIC_STBAR];
    if (number < 0) return false;
    const Patch& patch = at(wad, wad.patches)[number];
    if (patch.left != 0 || patch.top != 0 || patch.width < SCREEN_WIDTH) return false;
    for (int x = 0; x < SCREEN_WIDTH; ++x) {
        int covered = 0;
        const uint8_t* post = bytes_at(wad, at(wad, patch.columns)[x]);
        for (; post[0] <= covered && covered < BAR_HEIGHT; post += post[1] + 4) covered = max(covered, post[0] + post[1]);
        if (covered < BAR_HEIGHT) return false;
    }
    return true;
}

OFA_FUNCTION void prepare_tables(RenderScratch& s, const WadBlob& wad) {
    if (s.tables.ready) return;
    build_angle_tables(s.tables, wad);
    build_plane_tables(s.tables, wad);
    build_light_tables(s.tables);
    s.tables.bar_is_solid = bar_is_solid(wad);
    for (int i = 0; i < MAX_SHOWN; ++i) s.texture_shown[i] = s.flat_shown[i] = int16_t(i);
    s.tables.ready = 1;
}

// The simulation animates pictures before it counts the tic, so the picture lags the clock by one.
OFA_FUNCTION void animate_pictures(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Animation* animations = at(wad, wad.animations);
    const uint32_t tic = uint32_t(max(game.level_tics - 1, 0));
    for (uint32_t i = 0; i < wad.animations.count; ++i) {
        const Animation& a = animations[i];
        int16_t* shown = a.is_texture ? s.texture_shown : s.flat_shown;
        for (int picture = a.base; picture < a.base + a.n; ++picture)
            shown[picture] = int16_t(a.base + (tic / uint32_t(a.tics) + uint32_t(picture)) % uint32_t(a.n));
    }
}

OFA_FUNCTION void set_up_view(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Player& player = game.players[game.viewed];
    const Mobj& eye = game.mobjs[player.mobj];
    View& v = s.view;
    v.x = eye.x;
    v.y = eye.y;
    v.z = player.view_z;
    v.angle = eye.angle;
    v.sine = fine_sine(wad, v.angle);
    v.cosine = fine_cosine(wad, v.angle);
    const Angle left = v.angle - ANGLE_90;
    v.plane_step_x = fixed_div(fine_cosine(wad, left), CENTER_X * UNIT);
    v.plane_step_y = wrap_sub(0, fixed_div(fine_sine(wad, left), CENTER_X * UNIT));
    v.extra_light = player.extra_light;
    v.fixed_map = player.fixed_colormap ? player.fixed_colormap : NO_FIXED_MAP;
    v.sky = wad.sky_texture[clamp(game.sky - 1, 0, 3)];

    const Level& level = at(wad, wad.levels)[game.level];
    v.vertices = at(wad, level.vertices);
    v.segs = at(wad, level.segs);
    v.subsectors = at(wad, level.subsectors);
    v.nodes = at(wad, level.nodes);
    v.textures = at(wad, wad.textures);
    v.colormaps = at(wad, wad.colormaps)[0];
}

OFA_FUNCTION void clear_lists(RenderScratch& s) {
    s.n_draw_segs = s.n_planes = s.n_sprites = s.n_columns = s.n_spans = s.n_fuzzy = s.n_tangents_beyond = 0;
    s.planes_overlap = 0;
    s.solid[0] = {FIXED_MIN + 1, -1};
    s.solid[1] = {VIEW_WIDTH, FIXED_MAX};
    s.n_solid = 2;
    for (int x = 0; x < VIEW_WIDTH; ++x) {
        s.ceiling_clip[x] = -1;
        s.floor_clip[x] = VIEW_HEIGHT;
        s.openings[OPENING_VIEW_HEIGHT + x] = VIEW_HEIGHT;
        s.openings[OPENING_MINUS_ONE + x] = -1;
    }
    s.n_openings = OPENING_FIRST_FREE;
    for (int16_t& chain : s.plane_chains) chain = NONE;
    for (uint32_t& word : s.sector_seen) word = 0;
}

OFA_INLINE int light_level(const View& v, int light) {
    return clamp((light >> 4) + v.extra_light, 0, LIGHT_LEVELS - 1);
}

// Walls along the y axis are a step brighter than those along the x axis, the others in between.
OFA_INLINE int wall_light_level(const View& v, const MapSeg& seg, int light) {
    const MapVertex& a = v.vertices[seg.v1];
    const MapVertex& b = v.vertices[seg.v2];
    const int contrast = a.y == b.y ? -1 : a.x == b.x ? 1 : 0;
    return clamp((light >> 4) + v.extra_light + contrast, 0, LIGHT_LEVELS - 1);
}

OFA_INLINE int wall_map(const RenderScratch& s, int level, Fixed scale) {
    if (s.view.fixed_map != NO_FIXED_MAP) return s.view.fixed_map;
    const uint32_t step = uint32_t(scale) >> 12;
    return s.tables.wall_map[level][step < WALL_LIGHTS ? step : WALL_LIGHTS - 1];
}

}  // namespace render
}  // namespace doom
