// The bar below the view: ammunition, health, weapons, face, armour, keys. Places are those of the 320x200 screen.
#pragma once

#include "patches.h"

namespace doom {
namespace render {

constexpr int BIG_Y = 171;
constexpr int BIG_DIGITS = 3, SMALL_DIGITS = 3;
constexpr int READY_AMMO_X = 44, HEALTH_X = 90, ARMOR_X = 221;
constexpr int ARMS_X = 104, ARMS_NUMBER_X = 111, ARMS_NUMBER_Y = 172, ARMS_STEP_X = 12, ARMS_STEP_Y = 10;
constexpr int ARMS_NUMBERS = 6;             // weapons 2-7: pistol to BFG
constexpr int FACE_X = 143;
constexpr int KEY_X = 239, KEY_Y = 171, KEY_STEP_Y = 10;
constexpr int AMMO_X = 288, MAX_AMMO_X = 314;
OFA_TABLE int AMMO_Y[AMMO_TYPES] = {173, 179, 191, 185};

OFA_FUNCTION void place_percentage(RenderScratch& s, const WadBlob& wad, int x, int value) {
    place(s, wad, GRAPHIC_STTPRCNT, x, BIG_Y);
    place_number(s, wad, GRAPHIC_STTNUM, x, BIG_Y, max(value, 0), BIG_DIGITS);
}

// Numbers of the weapons, yellow for those owned. A number that changes takes the bar, not the frame behind the
// numbers, for its background.
OFA_FUNCTION void place_arms(RenderScratch& s, const Game& game, const WadBlob& wad, const Player& player) {
    place(s, wad, GRAPHIC_STARMS, ARMS_X, BAR_Y);
    for (int i = 0; i < ARMS_NUMBERS; ++i) {
        const int x = ARMS_NUMBER_X + i % 3 * ARMS_STEP_X, y = ARMS_NUMBER_Y + i / 3 * ARMS_STEP_Y;
        const int weapon = WEAPON_PISTOL + i, grey = GRAPHIC_STGNUM + i + 2, yellow = GRAPHIC_STYSNUM + i + 2;
        const bool owned = player.weapon_owned[weapon];
        if (owned != bool(game.status_bar.first_weapons[weapon]))
            place_inside(s, wad, GRAPHIC_STBAR, 0, BAR_Y, owned ? grey : yellow, x, y);
        place(s, wad, owned ? yellow : grey, x, y);
    }
}

OFA_FUNCTION void place_status_bar(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Player& player = game.players[game.viewed];
    place(s, wad, GRAPHIC_STBAR, 0, BAR_Y);
    // the first player's colour for everybody: the original picks it before a demo says who is viewed
    if (game.cooperative) place(s, wad, GRAPHIC_STFB, FACE_X, BAR_Y);

    const int ammo = at(wad, wad.weapons)[player.ready_weapon].ammo;
    if (ammo < AMMO_TYPES) place_number(s, wad, GRAPHIC_STTNUM, READY_AMMO_X, BIG_Y, player.ammo[ammo], BIG_DIGITS);
    for (int i = 0; i < AMMO_TYPES; ++i) {
        place_number(s, wad, GRAPHIC_STYSNUM, AMMO_X, AMMO_Y[i], player.ammo[i], SMALL_DIGITS);
        place_number(s, wad, GRAPHIC_STYSNUM, MAX_AMMO_X, AMMO_Y[i], player.max_ammo[i], SMALL_DIGITS);
    }
    place_percentage(s, wad, HEALTH_X, player.health);
    place_percentage(s, wad, ARMOR_X, player.armor);

    place_arms(s, game, wad, player);
    place(s, wad, GRAPHIC_STFACE + game.status_bar.face, FACE_X, BAR_Y);
    for (int i = 0; i < 3; ++i) {           // a skull hides the card of its colour
        const int y = KEY_Y + i * KEY_STEP_Y;
        if (player.cards[SKULL_BLUE + i]) place(s, wad, GRAPHIC_STKEYS + int(SKULL_BLUE) + i, KEY_X, y);
        else if (player.cards[CARD_BLUE + i]) place(s, wad, GRAPHIC_STKEYS + int(CARD_BLUE) + i, KEY_X, y);
    }
}

}  // namespace render
}  // namespace doom
