// Special lines: what crossing, using or shooting one does. Which does what is a table of the blob.
#pragma once

#include "ceilings.h"
#include "doors.h"
#include "floors.h"
#include "lights.h"
#include "plats.h"
#include "teleport.h"

namespace doom {

constexpr int BUTTON_TICS = 35;

OFA_FUNCTION LineSpecial line_special(const WorldBase& w, int line) {
    const int number = w.g.lines[line].special;
    if (number <= 0 || number >= LINE_SPECIALS) return {};
    return at(w.wad, w.wad.line_specials)[number];
}

// --- switches ------------------------------------------------------------------------------------------------------

OFA_FUNCTION void start_button(Game& g, int line, ButtonPlace place, int texture) {
    for (const Button& b : g.buttons)
        if (b.timer && b.line == line) return;
    for (Button& b : g.buttons) {
        if (b.timer) continue;
        b = {line, place, int16_t(texture), BUTTON_TICS};
        return;
    }
    g.exhausted = 1;
}

OFA_FUNCTION int16_t& side_texture(Side& side, ButtonPlace place) {
    return place == BUTTON_TOP ? side.top : place == BUTTON_MIDDLE ? side.middle : side.bottom;
}

// A switch is heard from where the first button of the list is, and everywhere when that one is free.
OFA_FUNCTION void start_switch_sound(WorldBase& w) {
    const Button& first = w.g.buttons[0];
    if (first.timer) start_sector_sound(w, w.lines[first.line].sector[0], SOUND_SWTCHN);
    else start_sound_everywhere(w, SOUND_SWTCHN);
}

// Flips the first switch texture found on the front of the line; one that can be used again flips back later.
OFA_FUNCTION void flip_switch(WorldBase& w, int line, bool again) {
    Game& g = w.g;
    if (!again) g.lines[line].special = 0;
    Side& side = g.sides[w.lines[line].side[0]];
    const SwitchPair* pairs = at(w.wad, w.wad.switches);
    const int16_t shown[3] = {side.top, side.middle, side.bottom};
    for (uint32_t i = 0; i < w.wad.switches.count * 2; ++i) {
        const int16_t from = i & 1 ? pairs[i / 2].on : pairs[i / 2].off;
        const int16_t to = i & 1 ? pairs[i / 2].off : pairs[i / 2].on;
        for (int place = BUTTON_TOP; place <= BUTTON_BOTTOM; ++place) {
            if (shown[place] != from) continue;
            start_switch_sound(w);
            side_texture(side, ButtonPlace(place)) = to;
            if (again) start_button(g, line, ButtonPlace(place), from);
            return;
        }
    }
}

OFA_FUNCTION void tick_buttons(WorldBase& w) {
    for (Button& b : w.g.buttons) {
        if (!b.timer || --b.timer) continue;
        side_texture(w.g.sides[w.lines[b.line].side[0]], b.place) = b.texture;
        start_sound_at(w, 0, 0, SOUND_SWTCHN);
        b = {};
    }
}

// --- effects -------------------------------------------------------------------------------------------------------

OFA_FUNCTION void leave_level(Game& g, bool secret) {
    g.secret_exit = secret;
    g.action = NEXT_COMPLETED;
}

// Starts what a special does (teleports apart); true if something was started.
OFA_FUNCTION bool start_special(WorldBase& w, int line, const LineSpecial& s) {
    switch (s.kind) {
        case KIND_DOOR: return start_doors(w, w.g.lines[line].tag, s.variant);
        case KIND_FLOOR: return start_floors(w, line, s.variant);
        case KIND_PLAT: return start_plats(w, line, s.variant, s.argument);
        case KIND_STAIRS: return start_stairs(w, line, s.variant == STAIRS_16_TURBO);
        case KIND_DONUT: return start_donut(w, line);
        case KIND_CEILING:
            if (s.variant == CEILING_RAISE_AND_FLOOR_LOWER) {
                start_ceilings(w, line, CEILING_RAISE_TO_HIGHEST);
                return start_floors(w, line, FLOOR_LOWER_TO_LOWEST);
            }
            return start_ceilings(w, line, s.variant);
        case KIND_LIGHT: change_lights(w, line, s.variant, s.argument); return true;
        case KIND_STOP_PLAT: stop_plats(w, line); return true;
        case KIND_STOP_CEILING: return stop_ceilings(w, line);
        case KIND_EXIT: leave_level(w.g, false); return true;
        case KIND_SECRET_EXIT: leave_level(w.g, true); return true;
        default: return false;
    }
}

OFA_FUNCTION bool is_missile_that_triggers_nothing(int type) {
    return type == THING_ROCKET || type == THING_PLASMA || type == THING_BFG_SHOT || type == THING_IMP_SHOT ||
           type == THING_CACODEMON_SHOT || type == THING_BARON_SHOT;
}

// `side` is the side the object came from.
template <class W>
OFA_FUNCTION void cross_special_line(W& w, int line, int side, int index) {
    const Mobj& m = w.g.mobjs[index];
    const LineSpecial s = line_special(w, line);
    if (s.trigger != TRIGGER_CROSS) return;
    if (m.player == NONE) {
        if (is_missile_that_triggers_nothing(m.type) || s.monsters == MONSTERS_NO) return;
    } else if (s.monsters == MONSTERS_ONLY) {
        return;
    }
    if (s.kind == KIND_TELEPORT) teleport(w, line, side, index);
    else start_special(w, line, s);
    if (!s.repeats) w.g.lines[line].special = 0;
}

OFA_FUNCTION void shoot_special_line(WorldBase& w, int line, int shooter) {
    const LineSpecial s = line_special(w, line);
    if (s.trigger != TRIGGER_SHOOT) return;
    if (w.g.mobjs[shooter].player == NONE && s.monsters == MONSTERS_NO) return;
    start_special(w, line, s);
    flip_switch(w, line, s.repeats);
}

// Somebody uses the line from `side`; false when that means nothing to them.
OFA_FUNCTION bool use_special_line(WorldBase& w, int line, int side, int user) {
    Game& g = w.g;
    const LineSpecial s = line_special(w, line);
    if (side) return false;
    Mobj& m = g.mobjs[user];
    if (m.player == NONE) {
        if (g.lines[line].flags & LINE_SECRET) return false;
        const int number = g.lines[line].special;
        if (number != 1 && number != 32 && number != 33 && number != 34) return false;
    }
    if (s.trigger == TRIGGER_DOOR) {
        use_door(w, line, s, user);
    } else if (s.trigger == TRIGGER_SWITCH) {
        if (s.key) {
            if (m.player == NONE) return true;
            if (!has_key(g.players[m.player], s.key)) {
                g.players[m.player].message = int16_t(MESSAGE_NEED_KEY_OBJECT + s.key - 1);
                start_sound_everywhere(w, SOUND_OOF);
                return true;
            }
        }
        const bool ends = s.kind == KIND_EXIT || s.kind == KIND_SECRET_EXIT;
        if (ends) flip_switch(w, line, false);
        if (start_special(w, line, s) && !ends) flip_switch(w, line, s.repeats);
    }
    return true;
}

// --- sectors that hurt ---------------------------------------------------------------------------------------------

template <class W>
OFA_FUNCTION void feel_floor(W& w, Player& p) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[p.mobj];
    Sector& sector = g.sectors[m.sector];
    if (m.z != sector.floor_height || sector.special < 0 || sector.special >= SECTOR_SPECIALS) return;
    const SectorSpecial s = at(w.wad, w.wad.sector_specials)[sector.special];
    if (s.secret) {
        ++p.secret_count;
        sector.special = 0;
        return;
    }
    if (s.ends_level) p.god = 0;
    if (s.damage) {
        const bool exposed = s.ends_level || !p.powers[POWER_SUIT] || (s.leaks && next_random(w) < 5);
        if (exposed && !(g.level_tics & 31)) damage_mobj(w, p.mobj, NONE, NONE, s.damage);
    }
    if (s.ends_level && p.health <= 10) leave_level(g, false);
}

}  // namespace doom
