// Things a player picks up by touching them.
#pragma once

#include "../messages.h"
#include "mobj.h"

namespace doom {

constexpr int BONUS_FLASH = 6;            // tics of the screen's tint per item
constexpr int HEALTH_MAX = 100, HEALTH_SUPER_MAX = 200;

OFA_FUNCTION int clip_size(int ammo) { return ammo == AMMO_BULLETS ? 10 : ammo == AMMO_SHELLS ? 4 : ammo == AMMO_CELLS ? 20 : 1; }
OFA_FUNCTION int ammo_limit(int ammo) {
    return ammo == AMMO_BULLETS ? 200 : ammo == AMMO_SHELLS ? 50 : ammo == AMMO_CELLS ? 300 : 50;
}

// Weapon a player without a better one changes to when the first ammunition for it arrives.
OFA_FUNCTION void prefer_weapon_for(Player& p, int ammo) {
    const int ready = p.ready_weapon;
    if (ammo == AMMO_BULLETS && ready == WEAPON_FIST)
        p.pending_weapon = p.weapon_owned[WEAPON_CHAINGUN] ? WEAPON_CHAINGUN : WEAPON_PISTOL;
    if (ammo == AMMO_SHELLS && (ready == WEAPON_FIST || ready == WEAPON_PISTOL) && p.weapon_owned[WEAPON_SHOTGUN])
        p.pending_weapon = WEAPON_SHOTGUN;
    if (ammo == AMMO_CELLS && (ready == WEAPON_FIST || ready == WEAPON_PISTOL) && p.weapon_owned[WEAPON_PLASMA])
        p.pending_weapon = WEAPON_PLASMA;
    if (ammo == AMMO_ROCKETS && ready == WEAPON_FIST && p.weapon_owned[WEAPON_ROCKETS])
        p.pending_weapon = WEAPON_ROCKETS;
}

// `clips` clip loads, 0 for half a load. False when there is no room.
OFA_FUNCTION bool give_ammo(const Game& g, Player& p, int ammo, int clips) {
    if (ammo < 0 || ammo >= AMMO_TYPES || p.ammo[ammo] == p.max_ammo[ammo]) return false;
    int amount = clips ? clips * clip_size(ammo) : clip_size(ammo) / 2;
    if (g.skill == 0 || g.skill == 4) amount *= 2;
    const int before = p.ammo[ammo];
    const int after = before + amount;
    p.ammo[ammo] = int16_t(after > p.max_ammo[ammo] ? p.max_ammo[ammo] : after);
    if (before == 0) prefer_weapon_for(p, ammo);
    return true;
}

OFA_FUNCTION int pickup_sound(int type) {
    switch (type) {
        case THING_SOULSPHERE: case THING_MEGASPHERE: case THING_INVULNERABILITY: case THING_BERSERK:
        case THING_INVISIBILITY: case THING_RADIATION_SUIT: case THING_COMPUTER_MAP: case THING_LIGHT_AMPLIFICATION:
            return SOUND_GETPOW;
        case THING_BFG9000: case THING_CHAINGUN: case THING_CHAINSAW: case THING_ROCKET_LAUNCHER:
        case THING_PLASMA_RIFLE: case THING_SHOTGUN: case THING_SUPER_SHOTGUN: return SOUND_WPNUP;
        default: return SOUND_ITEMUP;
    }
}

// Only the viewed player's pickups are heard.
OFA_FUNCTION void start_pickup_sound(WorldBase& w, const Player& p, int sound) {
    if (&p == &w.g.players[w.g.viewed]) start_sound_everywhere(w, sound);
}

OFA_FUNCTION bool give_weapon(WorldBase& w, Player& p, int weapon, bool dropped) {
    const int ammo = w.weapons[weapon].ammo;
    if ((w.g.cooperative || w.g.deathmatch) && w.g.deathmatch != 2 && !dropped) {
        if (p.weapon_owned[weapon]) return false;
        p.bonus_count += BONUS_FLASH;
        p.weapon_owned[weapon] = 1;
        give_ammo(w.g, p, ammo, w.g.deathmatch ? 5 : 2);
        p.pending_weapon = int8_t(weapon);
        start_pickup_sound(w, p, SOUND_WPNUP);
        return false;                      // it stays for the others
    }
    const bool got_ammo = give_ammo(w.g, p, ammo, dropped ? 1 : 2);
    if (p.weapon_owned[weapon]) return got_ammo;
    p.weapon_owned[weapon] = 1;
    p.pending_weapon = int8_t(weapon);
    return true;
}

OFA_FUNCTION void set_health(Game& g, Player& p, int health) {
    p.health = health;
    g.mobjs[p.mobj].health = health;
}

OFA_FUNCTION int at_most(int value, int limit) { return value > limit ? limit : value; }

OFA_FUNCTION bool give_body(Game& g, Player& p, int amount) {
    if (p.health >= HEALTH_MAX) return false;
    set_health(g, p, at_most(p.health + amount, HEALTH_MAX));
    return true;
}

OFA_FUNCTION bool give_armor(Player& p, int type) {
    if (p.armor >= type * 100) return false;
    p.armor_type = type;
    p.armor = type * 100;
    return true;
}

OFA_FUNCTION void give_card(Player& p, int card) {
    if (p.cards[card]) return;
    p.bonus_count = BONUS_FLASH;
    p.cards[card] = 1;
}

OFA_FUNCTION bool give_power(Game& g, Player& p, int power) {
    switch (power) {
        case POWER_INVULNERABLE: p.powers[power] = 30 * 35; return true;
        case POWER_INVISIBLE:
            p.powers[power] = 20 * 35;
            g.mobjs[p.mobj].flags |= MF_SHADOW;
            return true;
        case POWER_LIGHT: p.powers[power] = 120 * 35; return true;
        case POWER_SUIT: p.powers[power] = 60 * 35; return true;
        case POWER_STRENGTH:
            give_body(g, p, 100);
            p.powers[power] = 1;
            return true;
        default:
            if (p.powers[power]) return false;
            p.powers[power] = 1;
            return true;
    }
}

enum Taken : int8_t { TAKEN_NOT, TAKEN, TAKEN_STAYS };

OFA_FUNCTION Taken take_key(const Game& g, Player& p, int card, int message) {
    if (!p.cards[card]) p.message = int16_t(message);
    give_card(p, card);
    return g.cooperative || g.deathmatch ? TAKEN_STAYS : TAKEN;
}

OFA_FUNCTION Taken taken_if(bool taken) { return taken ? TAKEN : TAKEN_NOT; }

// Gives the item to the player; sets `message` for what is taken.
OFA_FUNCTION Taken take_item(WorldBase& w, Player& p, int type, bool dropped, int& message) {
    Game& g = w.g;
    switch (type) {
        case THING_GREEN_ARMOR: message = MESSAGE_ARMOR; return taken_if(give_armor(p, 1));
        case THING_BLUE_ARMOR: message = MESSAGE_MEGA_ARMOR; return taken_if(give_armor(p, 2));
        case THING_HEALTH_BONUS:
            set_health(g, p, at_most(p.health + 1, HEALTH_SUPER_MAX));
            message = MESSAGE_HEALTH_BONUS;
            return TAKEN;
        case THING_ARMOR_BONUS:
            p.armor = at_most(p.armor + 1, 200);
            if (!p.armor_type) p.armor_type = 1;
            message = MESSAGE_ARMOR_BONUS;
            return TAKEN;
        case THING_SOULSPHERE:
            set_health(g, p, at_most(p.health + 100, HEALTH_SUPER_MAX));
            message = MESSAGE_SOULSPHERE;
            return TAKEN;
        case THING_MEGASPHERE:
            if (!g.commercial) return TAKEN_NOT;
            set_health(g, p, HEALTH_SUPER_MAX);
            give_armor(p, 2);
            message = MESSAGE_MEGASPHERE;
            return TAKEN;
        case THING_BLUE_CARD: return take_key(g, p, CARD_BLUE, MESSAGE_BLUE_CARD);
        case THING_YELLOW_CARD: return take_key(g, p, CARD_YELLOW, MESSAGE_YELLOW_CARD);
        case THING_RED_CARD: return take_key(g, p, CARD_RED, MESSAGE_RED_CARD);
        case THING_BLUE_SKULL: return take_key(g, p, SKULL_BLUE, MESSAGE_BLUE_SKULL);
        case THING_YELLOW_SKULL: return take_key(g, p, SKULL_YELLOW, MESSAGE_YELLOW_SKULL);
        case THING_RED_SKULL: return take_key(g, p, SKULL_RED, MESSAGE_RED_SKULL);
        case THING_STIMPACK: message = MESSAGE_STIMPACK; return taken_if(give_body(g, p, 10));
        case THING_MEDIKIT:
            if (!give_body(g, p, 25)) return TAKEN_NOT;
            message = p.health < 25 ? MESSAGE_MEDIKIT_NEEDED : MESSAGE_MEDIKIT;  // (looks after the cure, so: never)
            return TAKEN;
        case THING_INVULNERABILITY: message = MESSAGE_INVULNERABILITY; return taken_if(give_power(g, p, POWER_INVULNERABLE));
        case THING_BERSERK:
            give_power(g, p, POWER_STRENGTH);
            message = MESSAGE_BERSERK;
            if (p.ready_weapon != WEAPON_FIST) p.pending_weapon = WEAPON_FIST;
            return TAKEN;
        case THING_INVISIBILITY: message = MESSAGE_INVISIBILITY; return taken_if(give_power(g, p, POWER_INVISIBLE));
        case THING_RADIATION_SUIT: message = MESSAGE_SUIT; return taken_if(give_power(g, p, POWER_SUIT));
        case THING_COMPUTER_MAP: message = MESSAGE_MAP; return taken_if(give_power(g, p, POWER_MAP));
        case THING_LIGHT_AMPLIFICATION: message = MESSAGE_VISOR; return taken_if(give_power(g, p, POWER_LIGHT));
        case THING_CLIP: message = MESSAGE_CLIP; return taken_if(give_ammo(g, p, AMMO_BULLETS, dropped ? 0 : 1));
        case THING_BULLET_BOX: message = MESSAGE_CLIP_BOX; return taken_if(give_ammo(g, p, AMMO_BULLETS, 5));
        case THING_ROCKET_AMMO: message = MESSAGE_ROCKET; return taken_if(give_ammo(g, p, AMMO_ROCKETS, 1));
        case THING_ROCKET_BOX: message = MESSAGE_ROCKET_BOX; return taken_if(give_ammo(g, p, AMMO_ROCKETS, 5));
        case THING_CELL: message = MESSAGE_CELL; return taken_if(give_ammo(g, p, AMMO_CELLS, 1));
        case THING_CELL_PACK: message = MESSAGE_CELL_BOX; return taken_if(give_ammo(g, p, AMMO_CELLS, 5));
        case THING_SHELLS: message = MESSAGE_SHELLS; return taken_if(give_ammo(g, p, AMMO_SHELLS, 1));
        case THING_SHELL_BOX: message = MESSAGE_SHELL_BOX; return taken_if(give_ammo(g, p, AMMO_SHELLS, 5));
        case THING_BACKPACK:
            if (!p.backpack) {
                for (int16_t& limit : p.max_ammo) limit = int16_t(limit * 2);
                p.backpack = 1;
            }
            for (int ammo = 0; ammo < AMMO_TYPES; ++ammo) give_ammo(g, p, ammo, 1);
            message = MESSAGE_BACKPACK;
            return TAKEN;
        default: break;
    }
    int weapon;
    switch (type) {
        case THING_BFG9000: weapon = WEAPON_BFG; message = MESSAGE_BFG; dropped = false; break;
        case THING_CHAINGUN: weapon = WEAPON_CHAINGUN; message = MESSAGE_CHAINGUN; break;
        case THING_CHAINSAW: weapon = WEAPON_CHAINSAW; message = MESSAGE_CHAINSAW; dropped = false; break;
        case THING_ROCKET_LAUNCHER: weapon = WEAPON_ROCKETS; message = MESSAGE_LAUNCHER; dropped = false; break;
        case THING_PLASMA_RIFLE: weapon = WEAPON_PLASMA; message = MESSAGE_PLASMA_GUN; dropped = false; break;
        case THING_SHOTGUN: weapon = WEAPON_SHOTGUN; message = MESSAGE_SHOTGUN; break;
        case THING_SUPER_SHOTGUN: weapon = WEAPON_SUPER_SHOTGUN; message = MESSAGE_SUPER_SHOTGUN; break;
        default: return TAKEN_NOT;
    }
    return taken_if(give_weapon(w, p, weapon, dropped));
}

OFA_NOINLINE void touch_special(WorldBase& w, int item, int toucher) {
    Game& g = w.g;
    const Mobj &special = g.mobjs[item], &m = g.mobjs[toucher];
    const Fixed delta = wrap_sub(special.z, m.z);
    if (delta > m.height || delta < -8 * UNIT || m.health <= 0 || m.player == NONE) return;
    Player& p = g.players[m.player];
    int message = MESSAGE_NONE;
    if (take_item(w, p, special.type, special.flags & MF_DROPPED, message) != TAKEN) return;
    if (message) p.message = int16_t(message);
    if (special.flags & MF_COUNTITEM) ++p.item_count;
    start_pickup_sound(w, p, pickup_sound(special.type));
    remove_mobj(w, item);
    p.bonus_count += BONUS_FLASH;
}

}  // namespace doom
