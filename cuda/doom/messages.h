// Messages of the game, by number.
#pragma once

#include "../platform/platform.h"

namespace doom {

enum Message : int16_t {
    MESSAGE_NONE,
    MESSAGE_ARMOR, MESSAGE_MEGA_ARMOR, MESSAGE_HEALTH_BONUS, MESSAGE_ARMOR_BONUS, MESSAGE_SOULSPHERE,
    MESSAGE_MEGASPHERE, MESSAGE_STIMPACK, MESSAGE_MEDIKIT, MESSAGE_MEDIKIT_NEEDED,
    MESSAGE_BLUE_CARD, MESSAGE_YELLOW_CARD, MESSAGE_RED_CARD, MESSAGE_BLUE_SKULL, MESSAGE_YELLOW_SKULL,
    MESSAGE_RED_SKULL,
    MESSAGE_INVULNERABILITY, MESSAGE_BERSERK, MESSAGE_INVISIBILITY, MESSAGE_SUIT, MESSAGE_MAP, MESSAGE_VISOR,
    MESSAGE_CLIP, MESSAGE_CLIP_BOX, MESSAGE_ROCKET, MESSAGE_ROCKET_BOX, MESSAGE_CELL, MESSAGE_CELL_BOX,
    MESSAGE_SHELLS, MESSAGE_SHELL_BOX, MESSAGE_BACKPACK,
    MESSAGE_BFG, MESSAGE_CHAINGUN, MESSAGE_CHAINSAW, MESSAGE_LAUNCHER, MESSAGE_PLASMA_GUN, MESSAGE_SHOTGUN,
    MESSAGE_SUPER_SHOTGUN,
    MESSAGE_NEED_KEY_DOOR,                                  // + 0 blue, 1 yellow, 2 red
    MESSAGE_NEED_KEY_OBJECT = MESSAGE_NEED_KEY_DOOR + 3,    // + 0 blue, 1 yellow, 2 red
    MESSAGES = MESSAGE_NEED_KEY_OBJECT + 3
};

// English text of a message, "" for none.
OFA_FUNCTION const char* message_text(int message) {
    switch (message) {
        case MESSAGE_ARMOR: return "Picked up the armor.";
        case MESSAGE_MEGA_ARMOR: return "Picked up the MegaArmor!";
        case MESSAGE_HEALTH_BONUS: return "Picked up a health bonus.";
        case MESSAGE_ARMOR_BONUS: return "Picked up an armor bonus.";
        case MESSAGE_SOULSPHERE: return "Supercharge!";
        case MESSAGE_MEGASPHERE: return "MegaSphere!";
        case MESSAGE_STIMPACK: return "Picked up a stimpack.";
        case MESSAGE_MEDIKIT: return "Picked up a medikit.";
        case MESSAGE_MEDIKIT_NEEDED: return "Picked up a medikit that you REALLY need!";
        case MESSAGE_BLUE_CARD: return "Picked up a blue keycard.";
        case MESSAGE_YELLOW_CARD: return "Picked up a yellow keycard.";
        case MESSAGE_RED_CARD: return "Picked up a red keycard.";
        case MESSAGE_BLUE_SKULL: return "Picked up a blue skull key.";
        case MESSAGE_YELLOW_SKULL: return "Picked up a yellow skull key.";
        case MESSAGE_RED_SKULL: return "Picked up a red skull key.";
        case MESSAGE_INVULNERABILITY: return "Invulnerability!";
        case MESSAGE_BERSERK: return "Berserk!";
        case MESSAGE_INVISIBILITY: return "Partial Invisibility";
        case MESSAGE_SUIT: return "Radiation Shielding Suit";
        case MESSAGE_MAP: return "Computer Area Map";
        case MESSAGE_VISOR: return "Light Amplification Visor";
        case MESSAGE_CLIP: return "Picked up a clip.";
        case MESSAGE_CLIP_BOX: return "Picked up a box of bullets.";
        case MESSAGE_ROCKET: return "Picked up a rocket.";
        case MESSAGE_ROCKET_BOX: return "Picked up a box of rockets.";
        case MESSAGE_CELL: return "Picked up an energy cell.";
        case MESSAGE_CELL_BOX: return "Picked up an energy cell pack.";
        case MESSAGE_SHELLS: return "Picked up 4 shotgun shells.";
        case MESSAGE_SHELL_BOX: return "Picked up a box of shotgun shells.";
        case MESSAGE_BACKPACK: return "Picked up a backpack full of ammo!";
        case MESSAGE_BFG: return "You got the BFG9000!  Oh, yes.";
        case MESSAGE_CHAINGUN: return "You got the chaingun!";
        case MESSAGE_CHAINSAW: return "A chainsaw!  Find some meat!";
        case MESSAGE_LAUNCHER: return "You got the rocket launcher!";
        case MESSAGE_PLASMA_GUN: return "You got the plasma gun!";
        case MESSAGE_SHOTGUN: return "You got the shotgun!";
        case MESSAGE_SUPER_SHOTGUN: return "You got the super shotgun!";
        case MESSAGE_NEED_KEY_DOOR: return "You need a blue key to open this door";
        case MESSAGE_NEED_KEY_DOOR + 1: return "You need a yellow key to open this door";
        case MESSAGE_NEED_KEY_DOOR + 2: return "You need a red key to open this door";
        case MESSAGE_NEED_KEY_OBJECT: return "You need a blue key to activate this object";
        case MESSAGE_NEED_KEY_OBJECT + 1: return "You need a yellow key to activate this object";
        case MESSAGE_NEED_KEY_OBJECT + 2: return "You need a red key to activate this object";
        default: return "";
    }
}

}  // namespace doom
