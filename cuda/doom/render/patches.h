// Pictures at fixed places of the screen: a list, filled by one thread and drawn by all.
#pragma once

#include "scratch.h"

namespace doom {
namespace render {

constexpr int NO_GRAPHIC = -1;

// Number of the patch of GRAPHIC_..., -1 where there is none.
OFA_INLINE int32_t patch_of_graphic(const WadBlob& wad, int graphic) {
    return graphic == NO_GRAPHIC ? -1 : at(wad, wad.graphics)[graphic];
}

// Puts picture GRAPHIC_... with its origin at (x, y). What the WAD lacks is left out.
OFA_INLINE void place(RenderScratch& s, const WadBlob& wad, int graphic, int x, int y) {
    const int32_t patch = patch_of_graphic(wad, graphic);
    if (patch < 0 || s.n_patches == MAX_PATCHES) return;
    s.patches[s.n_patches++] = {int16_t(patch), int16_t(x), int16_t(y), 0, 0, SCREEN_WIDTH - 1,
                                SCREEN_HEIGHT - 1};
}

OFA_INLINE const Patch* graphic_patch(const WadBlob& wad, int graphic) {
    const int32_t patch = patch_of_graphic(wad, graphic);
    return patch < 0 ? nullptr : &at(wad, wad.patches)[patch];
}

// The part of a picture placed with `place` that lies in the outline of another one.
OFA_INLINE void place_inside(RenderScratch& s, const WadBlob& wad, int graphic, int x, int y, int outline,
                             int outline_x, int outline_y) {
    const Patch* around = graphic_patch(wad, outline);
    const int n = s.n_patches;
    place(s, wad, graphic, x, y);
    if (!around || n == s.n_patches) return;
    PlacedPatch& placed = s.patches[n];
    placed.left = int16_t(max(outline_x - around->left, 0));
    placed.top = int16_t(max(outline_y - around->top, 0));
    placed.right = int16_t(min(outline_x - around->left + around->width, SCREEN_WIDTH) - 1);
    placed.bottom = int16_t(min(outline_y - around->top + around->height, SCREEN_HEIGHT) - 1);
}

OFA_INLINE int graphic_width(const WadBlob& wad, int graphic) {
    const Patch* patch = graphic_patch(wad, graphic);
    return patch ? patch->width : 0;
}

// A number that ends at `right`, in digits `zero` .. `zero + 9`, at most `digits` of them. Returns its left edge.
OFA_FUNCTION int place_number(RenderScratch& s, const WadBlob& wad, int zero, int right, int y, int value, int digits) {
    const int width = graphic_width(wad, zero);
    int x = right;
    do {
        x -= width;
        place(s, wad, zero + value % 10, x, y);
        value /= 10;
    } while (value > 0 && --digits > 0);
    return x;
}

OFA_FUNCTION void draw_patch_columns(const WadBlob& wad, uint8_t* frame, const PlacedPatch& placed, int first,
                                     int last) {
    const Patch& patch = at(wad, wad.patches)[placed.patch];
    const int left = placed.x - patch.left, top = placed.y - patch.top;
    const uint32_t* columns = at(wad, patch.columns);
    first = max(max(first, left), placed.left);
    last = min(min(last, left + patch.width - 1), placed.right);
    for (int x = first; x <= last; ++x) {
        const uint8_t* post = bytes_at(wad, columns[x - left]);
        for (; post[0] != 255; post += post[1] + 4) {
            const int row = top + post[0];
            const int begin = max(0, placed.top - row), end = min(post[1], placed.bottom + 1 - row);
            const uint8_t* OFA_RESTRICT source = post + 3;
            uint8_t* OFA_RESTRICT pixel = frame + row * SCREEN_WIDTH + x;
            for (int i = begin; i < end; ++i) pixel[i * SCREEN_WIDTH] = source[i];
        }
    }
}

// All threads, each its own columns, so that later pictures cover earlier ones. Empties the list.
template <class Block>
OFA_FUNCTION void draw_patches(Block& block, RenderScratch& s, const WadBlob& wad, uint8_t* frame) {
    block.sync();
    const int n_strips = min(block.threads(), SCREEN_WIDTH);
    block.for_each(n_strips, [&](int64_t index) {
        const int first = int(index * SCREEN_WIDTH / n_strips), last = int((index + 1) * SCREEN_WIDTH / n_strips) - 1;
        for (int i = 0; i < s.n_patches; ++i) draw_patch_columns(wad, frame, s.patches[i], first, last);
    });
    block.sync();
}

}  // namespace render
}  // namespace doom
