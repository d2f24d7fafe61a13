// Which of the 14 palettes the screen shows: red with pain, yellow with a find, green in a radiation suit.
#pragma once

#include "sprites.h"

namespace doom {

constexpr int PALETTE_RED = 1, RED_PALETTES = 8;
constexpr int PALETTE_BONUS = 9, BONUS_PALETTES = 4;
constexpr int PALETTE_SUIT = 13;

// Index into WadBlob::palettes of the viewed player's screen.
OFA_FUNCTION int doom_palette(const Game& game) {
    if (game.mode != MODE_LEVEL) return 0;
    const Player& player = game.players[game.viewed];
    int red = player.damage_count;
    if (player.powers[POWER_STRENGTH]) red = render::max(red, 12 - (player.powers[POWER_STRENGTH] >> 6));
    if (red > 0) return PALETTE_RED + render::min((red + 7) >> 3, RED_PALETTES - 1);
    if (player.bonus_count > 0) return PALETTE_BONUS + render::min((player.bonus_count + 7) >> 3, BONUS_PALETTES - 1);
    return render::power_shows(player.powers[POWER_SUIT]) ? PALETTE_SUIT : 0;
}

}  // namespace doom
