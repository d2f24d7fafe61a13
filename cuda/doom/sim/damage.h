// Hurting and killing.
#pragma once

#include "shoot.h"
#include "weapon_sprites.h"

namespace doom {

constexpr int CHASE_THRESHOLD = 100;      // tics a monster stays with a new target

OFA_FUNCTION int dropped_type(int type) {
    switch (type) {
        case THING_ZOMBIEMAN:
        case THING_WOLFENSTEIN_SS: return THING_CLIP;
        case THING_SHOTGUN_GUY: return THING_SHOTGUN;
        case THING_CHAINGUNNER: return THING_CHAINGUN;
        default: return NONE;
    }
}

template <class W>
OFA_FUNCTION void kill_mobj(W& w, int source, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const ThingType& t = type_of(w, m);
    m.flags &= ~uint32_t(MF_SHOOTABLE | MF_FLOAT | MF_SKULLFLY);
    if (m.type != THING_LOST_SOUL) m.flags &= ~uint32_t(MF_NOGRAVITY);
    m.flags |= MF_CORPSE | MF_DROPOFF;
    m.height >>= 2;
    if (m.flags & MF_COUNTKILL) {
        if (source != NONE && g.mobjs[source].player != NONE) ++g.players[g.mobjs[source].player].kill_count;
        else if (!g.cooperative && !g.deathmatch) ++g.players[0].kill_count;
    }
    if (m.player != NONE) {
        if (source == NONE) ++g.players[m.player].frags[m.player];
        else if (g.mobjs[source].player != NONE) ++g.players[g.mobjs[source].player].frags[m.player];
        m.flags &= ~uint32_t(MF_SOLID);
        g.players[m.player].mode = PLAYER_DEAD;
        drop_weapon(w, g.players[m.player]);
    }
    set_state(w, index, m.health < -t.health && t.xdeath_state ? t.xdeath_state : t.death_state);
    shorten_tics(w, m);
    const int item = dropped_type(m.type);
    if (item != NONE) g.mobjs[spawn_mobj(w, m.x, m.y, ON_FLOOR, item)].flags |= MF_DROPPED;
}

// Pushes the target away from what hit it; a light hit that kills from below sometimes lets it fall forward.
OFA_FUNCTION void push_by_damage(WorldBase& w, Mobj& m, const Mobj& inflictor, int damage) {
    Angle angle = angle_to(w, inflictor.x, inflictor.y, m.x, m.y);
    Fixed thrust = wrap_mul(wrap_mul(damage, UNIT >> 3), 100) / type_of(w, m).mass;
    if (damage < 40 && damage > m.health && wrap_sub(m.z, inflictor.z) > 64 * UNIT && (next_random(w) & 1)) {
        angle += ANGLE_180;
        thrust = wrap_mul(thrust, 4);
    }
    m.momx = wrap_add(m.momx, fixed_mul(thrust, cosine_of(w, angle)));
    m.momy = wrap_add(m.momy, fixed_mul(thrust, sine_of(w, angle)));
}

// What armor leaves of the damage to a player; false when the player takes none.
OFA_FUNCTION bool damage_player(WorldBase& w, Player& p, const Mobj& m, int source, int& damage) {
    if (w.g.sectors[m.sector].special == 11 && damage >= m.health) damage = m.health - 1;
    if (damage < 1000 && (p.god || p.powers[POWER_INVULNERABLE])) return false;
    if (p.armor_type) {
        int saved = p.armor_type == 1 ? damage / 3 : damage / 2;
        if (p.armor <= saved) {
            saved = p.armor;
            p.armor_type = 0;
        }
        p.armor -= saved;
        damage -= saved;
    }
    p.health -= damage;
    if (p.health < 0) p.health = 0;
    p.attacker = source;
    p.damage_count += damage;
    if (p.damage_count > 100) p.damage_count = 100;
    return true;
}

// `inflictor` is what touched the target (a missile), `source` who is to blame; both may be -1.
template <class W>
OFA_NOINLINE void damage_mobj(W& w, int index, int inflictor, int source, int damage) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (!(m.flags & MF_SHOOTABLE) || m.health <= 0) return;
    if (m.flags & MF_SKULLFLY) m.momx = m.momy = m.momz = 0;
    if (m.player != NONE && g.skill == 0) damage >>= 1;
    const bool sawn = source != NONE && g.mobjs[source].player != NONE &&
                      g.players[g.mobjs[source].player].ready_weapon == WEAPON_CHAINSAW;
    if (inflictor != NONE && !(m.flags & MF_NOCLIP) && !sawn) push_by_damage(w, m, g.mobjs[inflictor], damage);
    if (m.player != NONE && !damage_player(w, g.players[m.player], m, source, damage)) return;
    m.health -= damage;
    if (m.health <= 0) {
        kill_mobj(w, source, index);
        return;
    }
    const ThingType& t = type_of(w, m);
    if (next_random(w) < t.pain_chance && !(m.flags & MF_SKULLFLY)) {
        m.flags |= MF_JUSTHIT;
        set_state(w, index, t.pain_state);
    }
    m.reactiontime = 0;
    if ((m.threshold == 0 || m.type == THING_ARCH_VILE) && source != NONE && source != index &&
        g.mobjs[source].type != THING_ARCH_VILE) {
        m.target = source;
        m.threshold = CHASE_THRESHOLD;
        if (m.state == t.spawn_state && t.see_state != STATE_NULL) set_state(w, index, t.see_state);
    }
}

// Damage around `spot`, falling by one a unit; blocked by walls. Rows of cells are taken first here.
template <class W>
OFA_FUNCTION void radius_attack(W& w, int spot, int source, int damage) {
    Game& g = w.g;
    const Mobj& s = g.mobjs[spot];
    const Fixed reach = damage * UNIT;
    const int left = block_x(w, wrap_sub(s.x, reach)), right = block_x(w, wrap_add(s.x, reach));
    const int bottom = block_y(w, wrap_sub(s.y, reach)), top = block_y(w, wrap_add(s.y, reach));
    auto hurt = [&](int index) {
        const Mobj& m = g.mobjs[index];
        if (!(m.flags & MF_SHOOTABLE) || m.type == THING_CYBERDEMON || m.type == THING_SPIDER_MASTERMIND) return true;
        const Fixed dx = magnitude(wrap_sub(m.x, s.x)), dy = magnitude(wrap_sub(m.y, s.y));
        int distance = wrap_sub(dx > dy ? dx : dy, m.radius) >> 16;
        if (distance < 0) distance = 0;
        if (distance < damage && can_see(w, index, spot)) damage_mobj(w, index, spot, source, damage - distance);
        return true;
    };
    for (int by = bottom; by <= top; ++by)
        for (int bx = left; bx <= right; ++bx) for_things_in_block(w, bx, by, hurt);
}

}  // namespace doom
