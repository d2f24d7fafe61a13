// Sprites: projection of the objects of a sector, the weapon in the hand, and their order.
#pragma once

#include "view.h"

namespace doom {
namespace render {

constexpr Fixed NEAREST = 4 * UNIT;
constexpr uint16_t FRAME_BRIGHT = 0x8000;
constexpr int WEAPON_CENTER_Y = 100;
constexpr int POWER_FLICKER_TICS = 4 * 32;  // a power that runs out blinks for so long

OFA_INLINE bool power_shows(int32_t tics) { return tics > POWER_FLICKER_TICS || (tics & 8); }

// Screen columns of a picture whose left edge is `left` away from the view's axis, at a scale. False when outside.
OFA_INLINE bool place_columns(VisSprite& sprite, const Patch& patch, Fixed left, Fixed scale, Fixed inverse_scale,
                              bool mirrored) {
    const int first = wrap_add(CENTER_X * UNIT, fixed_mul(left, scale)) >> FIXED_BITS;
    if (first > VIEW_WIDTH) return false;
    const Fixed right = wrap_add(left, patch.width * UNIT);
    const int last = (wrap_add(CENTER_X * UNIT, fixed_mul(right, scale)) >> FIXED_BITS) - 1;
    if (last < 0) return false;
    sprite.first = max(first, 0);
    sprite.last = min(last, VIEW_WIDTH - 1);
    sprite.column_step = mirrored ? wrap_sub(0, inverse_scale) : inverse_scale;
    sprite.start_column = mirrored ? patch.width * UNIT - 1 : 0;
    if (sprite.first > first)
        sprite.start_column = wrap_add(sprite.start_column, wrap_mul(sprite.column_step, sprite.first - first));
    return true;
}

// The frame's picture for a rotation 0-7; null where the WAD lacks it.
OFA_INLINE const Patch* sprite_picture(const WadBlob& wad, int sprite, int frame, int rotation, bool& mirrored,
                                       int32_t& index) {
    const Sprite& definition = at(wad, wad.sprites)[sprite];
    if (uint32_t(frame) >= definition.n_frames) return nullptr;
    const SpriteFrame& f = at(wad, wad.sprite_frames)[definition.first_frame + uint32_t(frame)];
    index = f.patch[rotation];
    mirrored = f.flip[rotation];
    return index < 0 ? nullptr : &at(wad, wad.patches)[index];
}

OFA_FUNCTION void add_sprite(RenderScratch& s, const WadBlob& wad, const Mobj& thing, int light) {
    const View& v = s.view;
    const Fixed to_x = wrap_sub(thing.x, v.x), to_y = wrap_sub(thing.y, v.y);
    const Fixed depth = wrap_add(fixed_mul(to_x, v.cosine), fixed_mul(to_y, v.sine));
    if (depth < NEAREST) return;
    const Fixed scale = fixed_div(CENTER_X * UNIT, depth);
    const Fixed across = wrap_sub(fixed_mul(to_x, v.sine), fixed_mul(to_y, v.cosine));
    if (magnitude(across) > Fixed(uint32_t(depth) << 2)) return;

    const uint32_t rotation = (direction(wad, to_x, to_y) - thing.angle + ANGLE_45 / 2 * 9) >> 29;
    bool mirrored;
    int32_t picture;
    const Patch* patch =
        sprite_picture(wad, thing.sprite, thing.frame & ~FRAME_BRIGHT, int(rotation), mirrored, picture);
    if (!patch) return;

    VisSprite sprite;
    const Fixed inverse_scale = fixed_div(UNIT, scale);
    if (!place_columns(sprite, *patch, wrap_sub(across, patch->left * UNIT), scale, inverse_scale, mirrored)) return;
    if (s.n_sprites == MAX_SPRITES) return;
    sprite.x = thing.x;
    sprite.y = thing.y;
    sprite.z = thing.z;
    sprite.top_z = wrap_add(thing.z, patch->top * UNIT);
    sprite.texture_top = wrap_sub(sprite.top_z, v.z);
    sprite.scale = scale;
    sprite.patch = picture;
    sprite.translation = int32_t((thing.flags & MF_TRANSLATION) >> MF_TRANSLATION_SHIFT);
    sprite.fuzzy = NONE;
    if (thing.flags & MF_SHADOW) {
        sprite.map = FUZZ_MAP;
    } else if (v.fixed_map != NO_FIXED_MAP) {
        sprite.map = v.fixed_map;
    } else if (thing.frame & FRAME_BRIGHT) {
        sprite.map = 0;
    } else {
        sprite.map = wall_map(s, light, scale);
    }
    s.sprites[s.n_sprites++] = sprite;
}

// Objects of a sector, once a frame.
OFA_FUNCTION void add_sector_sprites(RenderScratch& s, const Game& game, const WadBlob& wad, int32_t index) {
    uint32_t& seen = s.sector_seen[index >> 5];
    const uint32_t bit = 1u << (index & 31);
    if (seen & bit) return;
    seen |= bit;
    const Sector& sector = game.sectors[index];
    const int light = light_level(s.view, sector.light);
    for (int32_t i = sector.objects; i != NONE; i = game.mobjs[i].sector_next) add_sprite(s, wad, game.mobjs[i], light);
}

// Farthest first; those at equal scale in the order they were found.
OFA_FUNCTION void sort_sprites(RenderScratch& s) {
    for (int i = 0; i < s.n_sprites; ++i) {
        const Fixed scale = s.sprites[i].scale;
        int k = i;
        for (; k > 0 && s.sprites[s.order[k - 1]].scale > scale; --k) s.order[k] = s.order[k - 1];
        s.order[k] = int16_t(i);
    }
}

// The weapon or its flash at its place on the screen; empty (last < first) when there is none.
OFA_FUNCTION void place_weapon_sprite(RenderScratch& s, const Game& game, const WadBlob& wad, int which) {
    const Player& player = game.players[game.viewed];
    const WeaponSprite& weapon = player.sprites[which];
    VisSprite& sprite = s.weapon_sprites[which];
    sprite.first = 0;
    sprite.last = -1;
    if (weapon.state < 0) return;
    bool mirrored;
    int32_t picture;
    const Patch* patch = sprite_picture(wad, weapon.sprite, weapon.frame & ~FRAME_BRIGHT, 0, mirrored, picture);
    if (!patch) return;
    const Fixed left = wrap_sub(wrap_sub(weapon.sx, SCREEN_WIDTH / 2 * UNIT), patch->left * UNIT);
    if (!place_columns(sprite, *patch, left, UNIT, UNIT, mirrored)) {
        sprite.first = 0;
        sprite.last = -1;
        return;
    }
    sprite.scale = UNIT;
    sprite.texture_top =
        wrap_sub(WEAPON_CENTER_Y * UNIT + UNIT / 2, wrap_sub(weapon.sy, patch->top * UNIT));
    sprite.patch = picture;
    sprite.translation = 0;
    sprite.fuzzy = NONE;
    if (power_shows(player.powers[POWER_INVISIBLE])) {
        sprite.map = FUZZ_MAP;
    } else if (s.view.fixed_map != NO_FIXED_MAP) {
        sprite.map = s.view.fixed_map;
    } else if (weapon.frame & FRAME_BRIGHT) {
        sprite.map = 0;
    } else {
        const int light = light_level(s.view, game.sectors[game.mobjs[player.mobj].sector].light);
        sprite.map = s.tables.wall_map[light][WALL_LIGHTS - 1];
    }
}

OFA_INLINE void number_fuzzy(RenderScratch& s, VisSprite& sprite) {
    if (sprite.map == FUZZ_MAP && sprite.first <= sprite.last) sprite.fuzzy = s.n_fuzzy++;
}

// Puts sprites into drawing order and numbers those that need a start in the fuzz table.
OFA_FUNCTION void arrange_sprites(RenderScratch& s, const Game& game, const WadBlob& wad) {
    sort_sprites(s);
    place_weapon_sprite(s, game, wad, 0);
    place_weapon_sprite(s, game, wad, 1);
    for (int i = 0; i < s.n_sprites; ++i) number_fuzzy(s, s.sprites[s.order[i]]);
    for (VisSprite& weapon : s.weapon_sprites) number_fuzzy(s, weapon);
}

}  // namespace render
}  // namespace doom
