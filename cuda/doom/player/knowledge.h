// What the player knows about monsters, floors and items.
#pragma once

#include "../sim/game.h"
#include "character.h"

namespace doom {

constexpr int ANY_WAY = 0x7FFFFFFF;       // an item worth every detour
constexpr int ITEM_REACH = 1200;          // map units of a usual detour

OFA_FUNCTION int script_random(Script& s) {
    s.random = s.random * 1664525u + 1013904223u;
    return int(s.random >> 16) & 0x7FFF;
}

OFA_FUNCTION bool hurts(const Game& g, int sector) {
    switch (g.sectors[sector].special) {
        case 4: case 5: case 7: case 11: case 16: return true;
        default: return false;
    }
}

// Whether the player is being hurt where it stands, or would be.
OFA_FUNCTION bool is_hurt_by(const Game& g, const Player& p, int sector) { return hurts(g, sector) && !p.powers[POWER_SUIT]; }

// --- monsters ------------------------------------------------------------------------------------------------------

OFA_FUNCTION bool is_enemy(const Mobj& m) {
    return (m.flags & MF_SHOOTABLE) && m.health > 0 && ((m.flags & MF_COUNTKILL) || m.type == THING_LOST_SOUL);
}

OFA_FUNCTION bool is_awake(const Mobj& m) { return m.target != NONE; }

// How much to fear one: 1 for a zombie, 8 for the worst.
OFA_FUNCTION int danger_of(int type) {
    switch (type) {
        case THING_ZOMBIEMAN: case THING_IMP: case THING_LOST_SOUL: return 1;
        case THING_SHOTGUN_GUY: case THING_DEMON: case THING_SPECTRE: case THING_CACODEMON: case THING_WOLFENSTEIN_SS:
            return 2;
        case THING_CHAINGUNNER: case THING_REVENANT: case THING_HELL_KNIGHT: case THING_PAIN_ELEMENTAL: return 3;
        case THING_BARON: case THING_MANCUBUS: case THING_ARACHNOTRON: return 4;
        case THING_ARCH_VILE: return 6;
        case THING_CYBERDEMON: case THING_SPIDER_MASTERMIND: return 8;
        default: return 0;
    }
}

OFA_FUNCTION bool only_bites(int type) { return type == THING_DEMON || type == THING_SPECTRE || type == THING_LOST_SOUL; }

OFA_FUNCTION bool shoots_bullets(int type) {
    switch (type) {
        case THING_ZOMBIEMAN: case THING_SHOTGUN_GUY: case THING_CHAINGUNNER: case THING_WOLFENSTEIN_SS:
        case THING_SPIDER_MASTERMIND: case THING_ARCH_VILE: return true;
        default: return false;
    }
}

// Kind of monster that has to die out for the sectors with tag 666 or 667 to move; NONE where that does nothing.
OFA_FUNCTION int boss_type(const Game& g, int tag) {
    if (g.commercial) {
        if (g.map == 7) return tag == 666 ? THING_MANCUBUS : THING_ARACHNOTRON;
        return tag == 666 ? THING_KEEN : NONE;
    }
    if (tag != 666) return NONE;
    if (g.episode == 1 && g.map == 8) return THING_BARON;
    if (g.episode == 4 && g.map == 6) return THING_CYBERDEMON;
    if (g.episode == 4 && g.map == 8) return THING_SPIDER_MASTERMIND;
    return NONE;
}

OFA_FUNCTION bool ends_level_by_death(const Game& g, int type) {
    if (g.commercial) return type == THING_BOSS_BRAIN;
    if (g.map != 8) return false;
    if (g.episode == 2) return type == THING_CYBERDEMON;
    return g.episode == 3 && type == THING_SPIDER_MASTERMIND;
}

// --- items ---------------------------------------------------------------------------------------------------------

// Key colour (1 blue, 2 yellow, 3 red) of a card or skull, 0 of anything else.
OFA_FUNCTION int key_colour(int type) {
    switch (type) {
        case THING_BLUE_CARD: case THING_BLUE_SKULL: return 1;
        case THING_YELLOW_CARD: case THING_YELLOW_SKULL: return 2;
        case THING_RED_CARD: case THING_RED_SKULL: return 3;
        default: return 0;
    }
}

OFA_FUNCTION int weapon_of_item(int type) {
    switch (type) {
        case THING_SHOTGUN: return WEAPON_SHOTGUN;
        case THING_SUPER_SHOTGUN: return WEAPON_SUPER_SHOTGUN;
        case THING_CHAINGUN: return WEAPON_CHAINGUN;
        case THING_ROCKET_LAUNCHER: return WEAPON_ROCKETS;
        case THING_PLASMA_RIFLE: return WEAPON_PLASMA;
        case THING_BFG9000: return WEAPON_BFG;
        case THING_CHAINSAW: return WEAPON_CHAINSAW;
        default: return NONE;
    }
}

// Ammo an item holds, AMMO_NONE for anything else.
OFA_FUNCTION int ammo_of_item(int type) {
    switch (type) {
        case THING_CLIP: case THING_BULLET_BOX: return AMMO_BULLETS;
        case THING_SHELLS: case THING_SHELL_BOX: return AMMO_SHELLS;
        case THING_ROCKET_AMMO: case THING_ROCKET_BOX: return AMMO_ROCKETS;
        case THING_CELL: case THING_CELL_PACK: return AMMO_CELLS;
        default: return AMMO_NONE;
    }
}

OFA_FUNCTION bool uses_ammo(const WorldBase& w, const Player& p, int ammo) {
    for (int i = 0; i < WEAPON_TYPES; ++i)
        if (p.weapon_owned[i] && w.weapons[i].ammo == ammo) return true;
    return false;
}

OFA_FUNCTION bool heals(int type) {
    return type == THING_STIMPACK || type == THING_MEDIKIT || type == THING_SOULSPHERE || type == THING_MEGASPHERE;
}

OFA_FUNCTION int reach_for_health(const Player& p) {
    if (p.health < 35) return 6 * ITEM_REACH;
    if (p.health < 60) return 2 * ITEM_REACH;
    return p.health < 90 ? ITEM_REACH / 2 : 0;
}

OFA_FUNCTION int reach_for_ammo(const WorldBase& w, const Player& p, int ammo) {
    if (!uses_ammo(w, p, ammo)) return 0;
    const int have = p.ammo[ammo] * 20 / p.max_ammo[ammo];
    return have < 2 ? 2 * ITEM_REACH : have < 4 ? ITEM_REACH : have < 10 ? ITEM_REACH / 2 : 0;
}

// Whether an item is of use to who fights by hand.
OFA_FUNCTION bool is_for_hands(int type) {
    return type == THING_BERSERK || type == THING_CHAINSAW || (weapon_of_item(type) == NONE && ammo_of_item(type) == AMMO_NONE);
}

// How far out of its way a player in want of everything goes for an item; 0 when it is of no use.
OFA_FUNCTION int reach_for_item(const WorldBase& w, const Player& p, int type) {
    const int weapon = weapon_of_item(type);
    const bool by_hand = character_of(w.g).by_hand;
    if (by_hand && !is_for_hands(type)) return 0;
    if (by_hand && type == THING_BERSERK && !p.powers[POWER_STRENGTH]) return 4 * ITEM_REACH;
    if (weapon == WEAPON_CHAINSAW) return p.weapon_owned[weapon] ? 0 : ITEM_REACH;
    if (weapon != NONE) return p.weapon_owned[weapon] ? reach_for_ammo(w, p, w.weapons[weapon].ammo) / 2 : 2 * ITEM_REACH;
    const int ammo = ammo_of_item(type);
    if (ammo != AMMO_NONE) return reach_for_ammo(w, p, ammo);
    switch (type) {
        case THING_BLUE_CARD: return p.cards[CARD_BLUE] ? 0 : ANY_WAY;
        case THING_YELLOW_CARD: return p.cards[CARD_YELLOW] ? 0 : ANY_WAY;
        case THING_RED_CARD: return p.cards[CARD_RED] ? 0 : ANY_WAY;
        case THING_BLUE_SKULL: return p.cards[SKULL_BLUE] ? 0 : ANY_WAY;
        case THING_YELLOW_SKULL: return p.cards[SKULL_YELLOW] ? 0 : ANY_WAY;
        case THING_RED_SKULL: return p.cards[SKULL_RED] ? 0 : ANY_WAY;
        case THING_STIMPACK:
        case THING_MEDIKIT: return reach_for_health(p);
        case THING_SOULSPHERE: return p.health < 150 ? ITEM_REACH : 0;
        case THING_MEGASPHERE: return ITEM_REACH;
        case THING_GREEN_ARMOR: return p.armor < 60 ? ITEM_REACH : 0;
        case THING_BLUE_ARMOR: return p.armor < 120 ? ITEM_REACH : 0;
        case THING_BACKPACK: return p.backpack ? 0 : ITEM_REACH;
        case THING_BERSERK: return p.health < 60 ? 2 * ITEM_REACH : 0;
        case THING_RADIATION_SUIT: return p.powers[POWER_SUIT] ? 0 : ITEM_REACH / 2;
        case THING_INVULNERABILITY: return ITEM_REACH / 2;
        default: return 0;
    }
}

}  // namespace doom
