// The message at the top of the view, and the sign of a pause.
#pragma once

#include "../messages.h"
#include "patches.h"

namespace doom {
namespace render {

constexpr int FIRST_LETTER = '!', LAST_LETTER = '_', SPACE_WIDTH = 4;
constexpr int PAUSE_X = 126, PAUSE_Y = 4;

// Capital letters of the WAD's font from (x, y) on, until the screen ends.
OFA_FUNCTION void place_text(RenderScratch& s, const WadBlob& wad, const char* text, int x, int y) {
    for (; *text && x < SCREEN_WIDTH; ++text) {
        const int letter = *text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text;
        if (letter < FIRST_LETTER || letter > LAST_LETTER) {
            x += SPACE_WIDTH;
            continue;
        }
        const int graphic = GRAPHIC_STCFN + letter - FIRST_LETTER, width = graphic_width(wad, graphic);
        if (x + width > SCREEN_WIDTH) return;
        place(s, wad, graphic, x, y);
        x += width;
    }
}

OFA_FUNCTION void place_message(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Player& player = game.players[game.viewed];
    if (game.mode == MODE_LEVEL && player.message_tics > 0)
        place_text(s, wad, message_text(player.shown_message), 0, 0);
    if (game.paused) place(s, wad, GRAPHIC_M_PAUSE, PAUSE_X, PAUSE_Y);
}

}  // namespace render
}  // namespace doom
