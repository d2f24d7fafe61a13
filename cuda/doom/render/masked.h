// What has holes: sprites and masked wall textures, drawn after everything solid, far to near.
//
// A pixel depends only on what was drawn before in its own column, so the screen is cut into strips of columns and
// each thread draws its strips in the original order. Only the position in the fuzz table runs across columns: fuzzy
// sprites are counted first, and each of their columns gets its starting position from the sum of those before.
#pragma once

#include "sprites.h"
#include "walls.h"

namespace doom {
namespace render {

constexpr int16_t UNCLIPPED = -2;

// Calls run(first, last, source, texture_row) for every post of a column that shows between the clips.
// `texture_row` is the texture's row at eye height, counted from the post's first pixel.
template <class Run>
OFA_INLINE void for_each_post(const WadBlob& wad, uint32_t posts, Fixed texture_top, Fixed scale, int top_clip,
                              int bottom_clip, Run run) {
    const uint8_t* post = bytes_at(wad, posts);
    const Fixed screen_top = wrap_sub(CENTER_Y * UNIT, fixed_mul(texture_top, scale));
    while (post[0] != 255) {
        const int row = post[0], length = post[1];
        const Fixed top = wrap_add(screen_top, wrap_mul(scale, row));
        const Fixed bottom = wrap_add(top, wrap_mul(scale, length));
        int first = wrap_add(top, UNIT - 1) >> FIXED_BITS;
        int last = wrap_sub(bottom, 1) >> FIXED_BITS;
        if (last >= bottom_clip) last = bottom_clip - 1;
        if (first <= top_clip) first = top_clip + 1;
        if (first <= last) run(first, last, posts + 3, wrap_sub(texture_top, row * UNIT));
        posts += uint32_t(length) + 4;
        post += length + 4;
    }
}

// Columns first..last of a masked texture that are not drawn yet.
OFA_FUNCTION void draw_masked_texture(RenderScratch& s, const Game& game, const WadBlob& wad, uint8_t* frame,
                                      const DrawSeg& d, int first, int last) {
    const View& v = s.view;
    const MapSeg& seg = v.segs[d.seg];
    const Side& side = game.sides[seg.side];
    const Sector& front = game.sectors[seg.front];
    const Sector& back = game.sectors[seg.back];
    const Texture& texture = v.textures[s.texture_shown[side.middle]];
    const int light = wall_light_level(v, seg, front.light);
    Fixed row;
    if (game.lines[seg.line].flags & LINE_PEG_BOTTOM) {
        row = wrap_add(max(front.floor_height, back.floor_height), texture.height * UNIT);
    } else {
        row = min(front.ceiling_height, back.ceiling_height);
    }
    row = wrap_add(wrap_sub(row, v.z), side.y_offset);

    Fixed scale = wrap_add(d.scale_first, wrap_mul(d.scale_step, first - d.first));
    for (int x = first; x <= last; ++x, scale = wrap_add(scale, d.scale_step)) {
        int16_t& column = s.openings[d.masked_columns + x];
        if (column == NOT_MASKED) continue;
        Column c;
        c.x = int16_t(x);
        c.step = Fixed(0xffffffffu / uint32_t(scale));
        c.map = uint8_t(wall_map(s, light, scale));
        const uint32_t posts = at(wad, texture.columns)[uint32_t(column) & texture.width_mask] - 3;
        for_each_post(wad, posts, row, scale, s.openings[d.top_clip + x], s.openings[d.bottom_clip + x],
                      [&](int top, int bottom, uint32_t source, Fixed texture_row) {
                          c.source = source;
                          c.first = uint8_t(top);
                          c.last = uint8_t(bottom);
                          c.fraction = wrap_add(texture_row, wrap_mul(c.step, top - CENTER_Y));
                          draw_column(frame, wad, v.colormaps, c);
                      });
        column = NOT_MASKED;
    }
}

// The first clip of a column counts.
OFA_INLINE void clip_rows(int16_t* OFA_RESTRICT rows, const int16_t* OFA_RESTRICT clip, int first, int last) {
    for (int x = first; x <= last; ++x) rows[x] = rows[x] == UNCLIPPED ? clip[x] : rows[x];
}

// Rows of the sprite's columns first..last that walls in front leave open. Masked textures behind it are drawn on the
// way where `draw_behind` is set.
OFA_FUNCTION void clip_sprite(RenderScratch& s, const Game& game, const WadBlob& wad, uint8_t* frame,
                              const VisSprite& visible, int first, int last, bool draw_behind) {
    const View& v = s.view;
    const VisSprite sprite = visible;
    for (int x = first; x <= last; ++x) s.sprite_top[x] = s.sprite_bottom[x] = UNCLIPPED;
    for (int i = s.n_draw_segs - 1; i >= 0; --i) {
        const DrawSeg& d = s.draw_segs[i];
        // one test, because each of the three alone would be a guess
        if ((d.first > last) | (d.last < first) | ((d.silhouette == 0) & (d.masked_columns == NONE))) continue;
        const int from = max(d.first, first), to = min(d.last, last);
        const MapSeg& seg = v.segs[d.seg];
        const MapVertex& a = v.vertices[seg.v1];
        const MapVertex& b = v.vertices[seg.v2];
        if (max(d.scale_first, d.scale_last) < sprite.scale ||
            (min(d.scale_first, d.scale_last) < sprite.scale &&
             is_right_of(sprite.x, sprite.y, a.x, a.y, wrap_sub(b.x, a.x), wrap_sub(b.y, a.y)))) {
            if (draw_behind && d.masked_columns != NONE) draw_masked_texture(s, game, wad, frame, d, from, to);
            continue;
        }
        if ((d.silhouette & SILHOUETTE_BOTTOM) && sprite.z < d.bottom_height)
            clip_rows(s.sprite_bottom, s.openings + d.bottom_clip, from, to);
        if ((d.silhouette & SILHOUETTE_TOP) && sprite.top_z > d.top_height)
            clip_rows(s.sprite_top, s.openings + d.top_clip, from, to);
    }
    for (int x = first; x <= last; ++x) {
        s.sprite_bottom[x] = s.sprite_bottom[x] == UNCLIPPED ? int16_t(VIEW_HEIGHT) : s.sprite_bottom[x];
        s.sprite_top[x] = s.sprite_top[x] == UNCLIPPED ? int16_t(-1) : s.sprite_top[x];
    }
}

OFA_INLINE void unclip(RenderScratch& s, int first, int last) {
    for (int x = first; x <= last; ++x) {
        s.sprite_bottom[x] = VIEW_HEIGHT;
        s.sprite_top[x] = -1;
    }
}

// The columns of a sprite's picture.
struct SpriteColumns {
    const uint32_t* columns;
    int last;
    Fixed start, step;                      // at screen column 0

    OFA_INLINE SpriteColumns(const WadBlob& wad, const VisSprite& sprite) {
        const Patch& patch = at(wad, wad.patches)[sprite.patch];
        columns = at(wad, patch.columns);
        last = patch.width - 1;
        step = sprite.column_step;
        start = wrap_sub(sprite.start_column, wrap_mul(step, sprite.first));
    }

    // Posts of the column that shows in screen column x.
    OFA_INLINE uint32_t posts(int x) const {
        return columns[clamp(wrap_add(start, wrap_mul(step, x)) >> FIXED_BITS, 0, last)];
    }
};

// Draws columns first..last between sprite_top and sprite_bottom.
OFA_FUNCTION void draw_sprite(RenderScratch& s, const WadBlob& wad, uint8_t* frame, const VisSprite& visible, int first,
                              int last) {
    const uint8_t* colormaps = s.view.colormaps;
    const VisSprite sprite = visible;       // a local: no pixel that is written can be part of it
    const SpriteColumns columns(wad, sprite);
    Column c;
    c.step = magnitude(sprite.column_step);
    c.map = uint8_t(sprite.map);
    for (int x = first; x <= last; ++x) {
        int fuzz = sprite.fuzzy != NONE ? s.fuzz_start[sprite.fuzzy][x] : 0;
        c.x = int16_t(x);
        for_each_post(wad, columns.posts(x), sprite.texture_top, sprite.scale, s.sprite_top[x], s.sprite_bottom[x],
                      [&](int top, int bottom, uint32_t source, Fixed texture_row) {
                          if (sprite.fuzzy != NONE) {
                              if (fuzz_rows(top, bottom)) fuzz = draw_fuzz(frame, colormaps, x, top, bottom, fuzz);
                              return;
                          }
                          c.source = source;
                          c.first = uint8_t(top);
                          c.last = uint8_t(bottom);
                          c.fraction = wrap_add(texture_row, wrap_mul(c.step, top - CENTER_Y));
                          if (sprite.translation) draw_translated_column(frame, wad, colormaps, c, sprite.translation);
                          else draw_column(frame, wad, colormaps, c);
                      });
    }
}

// Fuzzy pixels of each column in first..last.
OFA_FUNCTION void count_fuzzy(RenderScratch& s, const WadBlob& wad, const VisSprite& sprite, int first, int last) {
    const SpriteColumns columns(wad, sprite);
    for (int x = first; x <= last; ++x) {
        int n = 0;
        for_each_post(wad, columns.posts(x), sprite.texture_top, sprite.scale, s.sprite_top[x], s.sprite_bottom[x],
                      [&](int top, int bottom, uint32_t, Fixed) {
                          if (fuzz_rows(top, bottom)) n += bottom - top + 1;
                      });
        s.fuzz_start[sprite.fuzzy][x] = uint8_t(n);
    }
}

// Turns a fuzzy sprite's counts into starting positions; returns the position behind it.
OFA_INLINE int start_fuzz(RenderScratch& s, const VisSprite& sprite, int position) {
    for (int x = sprite.first; x <= sprite.last; ++x) {
        uint8_t& entry = s.fuzz_start[sprite.fuzzy][x];
        const int n = entry;
        entry = uint8_t(position);
        position = (position + n) % FUZZ_ENTRIES;
    }
    return position;
}

struct Strip {
    int first, last;
};
OFA_INLINE Strip strip(int64_t index, int n_strips) {
    return {int(index * VIEW_WIDTH / n_strips), int((index + 1) * VIEW_WIDTH / n_strips) - 1};
}

template <class Block>
OFA_FUNCTION void place_fuzz(Block& block, RenderScratch& s, Game& game, const WadBlob& wad, int n_strips) {
    block.for_each(n_strips, [&](int64_t index) {
        const Strip part = strip(index, n_strips);
        for (int i = 0; i < s.n_sprites; ++i) {
            const VisSprite& sprite = s.sprites[s.order[i]];
            const int first = max(sprite.first, part.first), last = min(sprite.last, part.last);
            if (sprite.fuzzy == NONE || first > last) continue;
            clip_sprite(s, game, wad, nullptr, sprite, first, last, false);
            count_fuzzy(s, wad, sprite, first, last);
        }
        unclip(s, part.first, part.last);
        for (const VisSprite& weapon : s.weapon_sprites)
            if (weapon.fuzzy != NONE)
                count_fuzzy(s, wad, weapon, max(weapon.first, part.first), min(weapon.last, part.last));
    });
    block.sync();
    if (block.leader()) {
        int position = game.fuzz_position;
        for (int i = 0; i < s.n_sprites; ++i)
            if (s.sprites[s.order[i]].fuzzy != NONE) position = start_fuzz(s, s.sprites[s.order[i]], position);
        for (const VisSprite& weapon : s.weapon_sprites)
            if (weapon.fuzzy != NONE) position = start_fuzz(s, weapon, position);
        game.fuzz_position = position;
    }
    block.sync();
}

template <class Block>
OFA_FUNCTION void draw_masked(Block& block, RenderScratch& s, Game& game, const WadBlob& wad, uint8_t* frame) {
    const int n_strips = min(block.threads(), VIEW_WIDTH);
    if (s.n_fuzzy) place_fuzz(block, s, game, wad, n_strips);
    block.for_each(n_strips, [&](int64_t index) {
        const Strip part = strip(index, n_strips);
        for (int i = 0; i < s.n_sprites; ++i) {
            const VisSprite& sprite = s.sprites[s.order[i]];
            const int first = max(sprite.first, part.first), last = min(sprite.last, part.last);
            if (first > last) continue;
            clip_sprite(s, game, wad, frame, sprite, first, last, true);
            draw_sprite(s, wad, frame, sprite, first, last);
        }
        for (int i = s.n_draw_segs - 1; i >= 0; --i) {
            const DrawSeg& d = s.draw_segs[i];
            if (d.masked_columns != NONE)
                draw_masked_texture(s, game, wad, frame, d, max(d.first, part.first), min(d.last, part.last));
        }
        unclip(s, part.first, part.last);
        for (const VisSprite& weapon : s.weapon_sprites)
            draw_sprite(s, wad, frame, weapon, max(weapon.first, part.first), min(weapon.last, part.last));
    });
}

}  // namespace render
}  // namespace doom
