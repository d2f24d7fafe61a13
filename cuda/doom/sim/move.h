// May an object be at a place, and moving it there.
#pragma once

#include "blockmap.h"

namespace doom {

constexpr Fixed STEP_HEIGHT = 24 * UNIT;
constexpr int MAX_SPECIAL_LINES = 32;

OFA_FUNCTION bool is_missile_of_own_kind(const Mobj& shooter, const Mobj& thing) {
    return shooter.type == thing.type || (shooter.type == THING_HELL_KNIGHT && thing.type == THING_BARON) ||
           (shooter.type == THING_BARON && thing.type == THING_HELL_KNIGHT);
}

// False when `index` stops the object being moved. Hits by missiles and charging skulls and pickups happen here.
template <class W>
OFA_FUNCTION bool pass_thing(W& w, int index) {
    Game& g = w.g;
    Clip& c = g.clip;
    Mobj& thing = g.mobjs[index];
    Mobj& mover = g.mobjs[c.thing];
    if (!(thing.flags & (MF_SOLID | MF_SPECIAL | MF_SHOOTABLE))) return true;
    const Fixed reach = thing.radius + mover.radius;
    if (magnitude(wrap_sub(thing.x, c.x)) >= reach || magnitude(wrap_sub(thing.y, c.y)) >= reach) return true;
    if (index == c.thing) return true;

    if (mover.flags & MF_SKULLFLY) {
        const int damage = (next_random(w) % 8 + 1) * type_of(w, mover).damage;
        damage_mobj(w, index, c.thing, c.thing, damage);
        Mobj& stopped = g.mobjs[c.thing];  // a monster woken by the damage may have moved: then it is the subject now
        stopped.flags &= ~uint32_t(MF_SKULLFLY);
        stopped.momx = stopped.momy = stopped.momz = 0;
        set_state(w, c.thing, type_of(w, stopped).spawn_state);
        return false;
    }
    if (mover.flags & MF_MISSILE) {
        if (mover.z > wrap_add(thing.z, thing.height) || wrap_add(mover.z, mover.height) < thing.z) return true;
        if (mover.target != NONE && is_missile_of_own_kind(g.mobjs[mover.target], thing)) {
            if (index == mover.target) return true;
            if (thing.type != THING_PLAYER) return false;
        }
        if (!(thing.flags & MF_SHOOTABLE)) return !(thing.flags & MF_SOLID);
        const int damage = (next_random(w) % 8 + 1) * type_of(w, mover).damage;
        damage_mobj(w, index, c.thing, mover.target, damage);
        return false;
    }
    if (thing.flags & MF_SPECIAL) {
        const bool solid = thing.flags & MF_SOLID;
        if (c.flags & MF_PICKUP) touch_special(w, index, c.thing);
        return !solid;
    }
    return !(thing.flags & MF_SOLID);
}

// False when the line stops the object being moved; else narrows the opening and notes special lines it touches.
OFA_FUNCTION bool pass_line(WorldBase& w, int line) {
    Game& g = w.g;
    Clip& c = g.clip;
    const MapLine& l = w.lines[line];
    if (c.box[BOX_RIGHT] <= l.box[BOX_LEFT] || c.box[BOX_LEFT] >= l.box[BOX_RIGHT] ||
        c.box[BOX_TOP] <= l.box[BOX_BOTTOM] || c.box[BOX_BOTTOM] >= l.box[BOX_TOP])
        return true;
    if (side_of_box(w, c.box, l) != -1) return true;
    if (l.sector[1] < 0) return false;
    const Mobj& mover = g.mobjs[c.thing];
    if (!(mover.flags & MF_MISSILE)) {
        if (g.lines[line].flags & LINE_BLOCKING) return false;
        if (mover.player == NONE && (g.lines[line].flags & LINE_BLOCK_MONSTERS)) return false;
    }
    find_opening(w, line);
    if (c.open_top < c.ceiling_z) {
        c.ceiling_z = c.open_top;
        c.ceiling_line = line;
    }
    if (c.open_bottom > c.floor_z) c.floor_z = c.open_bottom;
    if (c.low_floor < c.dropoff_z) c.dropoff_z = c.low_floor;
    if (g.lines[line].special && c.special_count < MAX_SPECIAL_LINES) c.special_lines[c.special_count++] = line;
    return true;
}

// Makes `index` at (x, y) the subject of the clipping variables.
OFA_FUNCTION void begin_clip(WorldBase& w, int index, Fixed x, Fixed y) {
    Game& g = w.g;
    Clip& c = g.clip;
    const Mobj& m = g.mobjs[index];
    c.thing = index;
    c.flags = m.flags;
    c.x = x;
    c.y = y;
    c.box[BOX_TOP] = wrap_add(y, m.radius);
    c.box[BOX_BOTTOM] = wrap_sub(y, m.radius);
    c.box[BOX_RIGHT] = wrap_add(x, m.radius);
    c.box[BOX_LEFT] = wrap_sub(x, m.radius);
    const Sector& s = g.sectors[w.subsectors[subsector_at(w, x, y)].sector];
    c.ceiling_line = NONE;
    c.floor_z = c.dropoff_z = s.floor_height;
    c.ceiling_z = s.ceiling_height;
    ++g.valid_count;
    c.special_count = 0;
}

// visit(bx, by) for the cells of the clip box grown by `margin`, columns first, until one says false.
template <class F>
OFA_FUNCTION bool for_blocks_around(WorldBase& w, const Fixed* box, Fixed margin, F visit) {
    const int left = block_x(w, wrap_sub(box[BOX_LEFT], margin)), right = block_x(w, wrap_add(box[BOX_RIGHT], margin));
    const int bottom = block_y(w, wrap_sub(box[BOX_BOTTOM], margin)), top = block_y(w, wrap_add(box[BOX_TOP], margin));
    for (int bx = left; bx <= right; ++bx)
        for (int by = bottom; by <= top; ++by)
            if (!visit(bx, by)) return false;
    return true;
}

// Whether the object could stand at (x, y), height apart. Leaves floor, ceiling, dropoff and special lines in Clip.
template <class W>
OFA_FUNCTION bool check_position(W& w, int index, Fixed x, Fixed y) {
    begin_clip(w, index, x, y);
    const Fixed* box = w.g.clip.box;
    if (w.g.clip.flags & MF_NOCLIP) return true;
    if (!for_blocks_around(w, box, LARGEST_RADIUS, [&](int bx, int by) {
            return for_things_in_block(w, bx, by, [&](int thing) { return pass_thing(w, thing); });
        }))
        return false;
    return for_blocks_around(w, box, 0, [&](int bx, int by) {
        return for_lines_in_block(w, bx, by, [&](int line) { return pass_line(w, line); });
    });
}

// Moves the object to (x, y) if it fits, and triggers special lines its centre crossed, last touched first.
template <class W>
OFA_NOINLINE bool try_move(W& w, int index, Fixed x, Fixed y) {
    Game& g = w.g;
    Clip& c = g.clip;
    Mobj& m = g.mobjs[index];
    c.float_ok = 0;
    if (!check_position(w, index, x, y)) return false;
    if (!(m.flags & MF_NOCLIP)) {
        if (wrap_sub(c.ceiling_z, c.floor_z) < m.height) return false;
        c.float_ok = 1;
        if (!(m.flags & MF_TELEPORT)) {
            if (wrap_sub(c.ceiling_z, m.z) < m.height) return false;
            if (wrap_sub(c.floor_z, m.z) > STEP_HEIGHT) return false;
        }
        if (!(m.flags & (MF_DROPOFF | MF_FLOAT)) && wrap_sub(c.floor_z, c.dropoff_z) > STEP_HEIGHT) return false;
    }
    unlink_position(w, index);
    const Fixed old_x = m.x, old_y = m.y;
    m.floorz = c.floor_z;
    m.ceilingz = c.ceiling_z;
    m.x = x;
    m.y = y;
    link_position(w, index);
    if (!(m.flags & (MF_TELEPORT | MF_NOCLIP))) {
        while (c.special_count-- > 0) {
            const int line = c.special_lines[c.special_count];
            const int old_side = side_of_line(w, old_x, old_y, w.lines[line]);
            if (side_of_line(w, m.x, m.y, w.lines[line]) != old_side && g.lines[line].special)
                cross_special_line(w, line, old_side, index);
        }
    }
    return true;
}

// Puts the object between floor and ceiling again after they moved; false when it does not fit.
template <class W>
OFA_FUNCTION bool clip_height(W& w, int index) {
    Mobj& m = w.g.mobjs[index];
    const bool on_floor = m.z == m.floorz;
    check_position(w, index, m.x, m.y);
    m.floorz = w.g.clip.floor_z;
    m.ceilingz = w.g.clip.ceiling_z;
    if (on_floor) m.z = m.floorz;
    else if (wrap_add(m.z, m.height) > m.ceilingz) m.z = wrap_sub(m.ceilingz, m.height);
    return wrap_sub(m.ceilingz, m.floorz) >= m.height;
}

// False when a shootable object stands at the target and may not be crushed by who arrives.
template <class W>
OFA_FUNCTION bool stomp_thing(W& w, int index) {
    Game& g = w.g;
    Clip& c = g.clip;
    const Mobj &thing = g.mobjs[index], &mover = g.mobjs[c.thing];
    if (!(thing.flags & MF_SHOOTABLE)) return true;
    const Fixed reach = thing.radius + mover.radius;
    if (magnitude(wrap_sub(thing.x, c.x)) >= reach || magnitude(wrap_sub(thing.y, c.y)) >= reach) return true;
    if (index == c.thing) return true;
    if (mover.player == NONE && g.map != 30) return false;
    damage_mobj(w, index, c.thing, c.thing, 10000);
    return true;
}

// Puts the object at (x, y) without looking at lines, killing whom it lands on; false when it may not.
template <class W>
OFA_FUNCTION bool teleport_move(W& w, int index, Fixed x, Fixed y) {
    Game& g = w.g;
    begin_clip(w, index, x, y);
    const Fixed* box = g.clip.box;
    if (!for_blocks_around(w, box, LARGEST_RADIUS, [&](int bx, int by) {
            return for_things_in_block(w, bx, by, [&](int thing) { return stomp_thing(w, thing); });
        }))
        return false;
    unlink_position(w, index);
    Mobj& m = g.mobjs[index];
    m.floorz = g.clip.floor_z;
    m.ceilingz = g.clip.ceiling_z;
    m.x = x;
    m.y = y;
    link_position(w, index);
    return true;
}

}  // namespace doom
