// The picture of a game: view, status bar, or the screens between levels.
//
// One thread walks the level and collects wall columns, floor and ceiling areas and sprites; then all threads of the
// block draw: walls, planes, sprites and masked textures. Every pixel's last writer is that of a serial drawing, so the
// number of threads and their order change nothing.
#pragma once

#include "bsp.h"
#include "intermission.h"
#include "masked.h"
#include "message.h"
#include "status_bar.h"

namespace doom {

namespace render {

template <class Block>
OFA_FUNCTION void draw_view(Block& block, Game& game, const WadBlob& wad, RenderScratch& s, uint8_t* frame) {
    if (block.leader()) {
        prepare_tables(s, wad);
        animate_pictures(s, game, wad);
        set_up_view(s, game, wad);
        clear_lists(s);
        s.column_limit = block.threads() > 1 ? MAX_COLUMNS : 0;
        walk_bsp(s, game, wad, frame);
        arrange_sprites(s, game, wad);
    }
    block.sync();
    block.for_each(s.n_columns, [&](int64_t i) { draw_column(frame, wad, s.view.colormaps, s.columns[i]); });
    block.sync();
    draw_planes(block, s, wad, frame);
    block.sync();
    draw_masked(block, s, game, wad, frame);
    block.sync();
}

using Place = void(RenderScratch&, const Game&, const WadBlob&);

// Patches on the screen: one thread lists them with `place`, all draw them. `place` is no argument, because a call
// through a pointer makes the GPU's compiler treat every function of the kernel as one that anybody may call.
template <Place* place, class Block>
OFA_FUNCTION void draw_placed(Block& block, const Game& game, const WadBlob& wad, RenderScratch& s, uint8_t* frame) {
    if (block.leader()) {
        s.n_patches = 0;
        place(s, game, wad);
    }
    draw_patches(block, s, wad, frame);
}

OFA_INLINE bool is_same(const PlacedPatch& a, const PlacedPatch& b) {
    return a.patch == b.patch && a.x == b.x && a.y == b.y && a.left == b.left && a.top == b.top && a.right == b.right &&
           a.bottom == b.bottom;
}

// Lists the bar's pictures and compares them with those of the bar drawn last.
OFA_FUNCTION void list_status_bar(RenderScratch& s, const Game& game, const WadBlob& wad) {
    place_status_bar(s, game, wad);
    bool same = s.tables.bar_is_solid && s.n_patches == s.n_bar_patches;
    for (int i = 0; same && i < s.n_patches; ++i) same = is_same(s.patches[i], s.bar_patches[i]);
    s.bar_is_drawn = same;
    if (same) s.n_patches = 0;
}

// Most tics change nothing in the bar: then it is copied.
template <class Block>
OFA_FUNCTION void draw_status_bar(Block& block, const Game& game, const WadBlob& wad, RenderScratch& s, uint8_t* frame) {
    constexpr int BAR_BYTES = BAR_HEIGHT * SCREEN_WIDTH;
    draw_placed<list_status_bar>(block, game, wad, s, frame);
    uint8_t* OFA_RESTRICT shown = frame + BAR_Y * SCREEN_WIDTH;
    uint8_t* OFA_RESTRICT kept = s.bar;
    if (s.bar_is_drawn) {
        block.for_each(BAR_BYTES, [&](int64_t i) { shown[i] = kept[i]; });
        return;
    }
    block.for_each(BAR_BYTES, [&](int64_t i) { kept[i] = shown[i]; });
    block.for_each(s.n_patches, [&](int64_t i) { s.bar_patches[i] = s.patches[i]; });
    if (block.leader()) s.n_bar_patches = s.n_patches;
    block.sync();
}

// Everything but text over the view.
template <class Block>
OFA_FUNCTION void draw_picture(Block& block, Game& game, const WadBlob& wad, RenderScratch& s, uint8_t* frame) {
    if (game.mode == MODE_LEVEL) {
        draw_view(block, game, wad, s, frame);
        draw_status_bar(block, game, wad, s, frame);
    } else {
        draw_placed<place_intermission>(block, game, wad, s, frame);
    }
}

template <class Block>
OFA_FUNCTION void draw_text(Block& block, const Game& game, const WadBlob& wad, RenderScratch& s, uint8_t* frame) {
    draw_placed<place_message>(block, game, wad, s, frame);
}

}  // namespace render

// Draws into `frame`, 320x200 palette indices. The frame must hold the game's previous picture: where a level's
// errors leave nothing to draw, that shows. `scratch` is the renderer's own memory for this game (scratch.h).
template <class Block>
OFA_FUNCTION void doom_draw(Block& block, Game& game, const WadBlob& wad, RenderScratch& scratch, uint8_t* frame) {
    render::draw_picture(block, game, wad, scratch, frame);
    render::draw_text(block, game, wad, scratch, frame);
}

}  // namespace doom
