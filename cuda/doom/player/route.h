// Shortest ways over the navigation graph as the level stands now.
#pragma once

#include "../sim/game.h"

namespace doom {

constexpr int UNREACHED = 0x7FFFFFFF;
constexpr Fixed BODY_HEIGHT = 56 * UNIT;

OFA_FUNCTION int script_random(Script& s) {
    s.random = s.random * 1664525u + 1013904223u;
    return int(s.random >> 16) & 0x7FFF;
}

enum Passage { PASSAGE_CLOSED, PASSAGE_FREE, PASSAGE_DOOR, PASSAGE_WAIT };

struct Gap {
    Fixed floor, ceiling;
};

OFA_FUNCTION bool fits_through(const Gap& from, const Gap& to) {
    const Fixed floor = from.floor > to.floor ? from.floor : to.floor;
    const Fixed ceiling = from.ceiling < to.ceiling ? from.ceiling : to.ceiling;
    return ceiling - floor >= BODY_HEIGHT && to.floor - from.floor <= STEP_HEIGHT;
}

OFA_FUNCTION Gap gap_of(const Game& g, int sector) {
    return {g.sectors[sector].floor_height, g.sectors[sector].ceiling_height};
}

// Gaps a sector has now and will have by itself; returns how many.
OFA_FUNCTION int coming_gaps(const Game& g, int sector, Gap* gaps) {
    const Gap now = gap_of(g, sector);
    int n = 0;
    gaps[n++] = now;
    if (g.sectors[sector].mover == NONE) return n;
    const Mover& m = g.movers[g.sectors[sector].mover];
    switch (g.thinkers[MAX_MOBJS + g.sectors[sector].mover].kind) {
        case THINKER_DOOR:
            if (m.direction != DOOR_DOWN || m.type == DOOR_CLOSE_30_OPEN) gaps[n++] = {now.floor, m.high};
            break;
        case THINKER_FLOOR: gaps[n++] = {m.high, now.ceiling}; break;
        case THINKER_PLAT:
            gaps[n++] = {m.high, now.ceiling};
            if (m.direction != PLAT_UP || m.type == PLAT_PERPETUAL) gaps[n++] = {m.low, now.ceiling};
            break;
        case THINKER_CEILING:
            if (m.crush || m.direction > 0) gaps[n++] = {now.floor, m.high};
            break;
        default: break;
    }
    return n;
}

OFA_FUNCTION bool is_own_door_shut(const WorldBase& w, const Player& p, const NavEdge& e) {
    return (e.flags & NAV_DOOR) && has_key(p, e.key) && line_special(w, e.line).trigger == TRIGGER_DOOR;
}

// Whether a sector will open by itself, can be opened by hand, or neither.
OFA_FUNCTION Passage help_by_sector(const WorldBase& w, const Player& p, int sector) {
    if (w.g.sectors[sector].mover != NONE) return PASSAGE_WAIT;
    const int32_t* first = at(w.wad, w.level->nav_sector_triggers) + sector;
    for (int i = first[0]; i < first[1]; ++i) {
        const NavTrigger& t = at(w.wad, w.level->nav_triggers)[i];
        if (line_special(w, t.line).trigger == TRIGGER_DOOR && has_key(p, t.key)) return PASSAGE_DOOR;
    }
    return PASSAGE_CLOSED;
}

// Whether the player has room at a point, coming from a floor height: something beside the passage may be in the way
// and has to move first. Notes that sector. `walls`: solid lines count too.
OFA_FUNCTION Passage probe_place(WorldBase& w, const Player& p, Fixed x, Fixed y, Fixed floor, bool walls) {
    const Fixed radius = w.types[THING_PLAYER].radius - (walls ? UNIT : 0);
    const Fixed box[4] = {y + radius, y - radius, x - radius, x + radius};
    Passage worst = PASSAGE_FREE;
    Game& g = w.g;
    ++g.valid_count;
    for_blocks_around(w, box, 0, [&](int bx, int by) {
        return for_lines_in_block(w, bx, by, [&](int line) {
            const MapLine& l = w.lines[line];
            const bool solid = l.sector[1] < 0 || (g.lines[line].flags & LINE_BLOCKING);
            if ((solid && !walls) || box[BOX_RIGHT] <= l.box[BOX_LEFT] || box[BOX_LEFT] >= l.box[BOX_RIGHT] ||
                box[BOX_TOP] <= l.box[BOX_BOTTOM] || box[BOX_BOTTOM] >= l.box[BOX_TOP] || side_of_box(w, box, l) != -1)
                return true;
            if (solid) {
                worst = PASSAGE_CLOSED;
                return false;
            }
            find_opening(w, line);
            if (g.clip.open_range >= BODY_HEIGHT && g.clip.open_bottom - floor <= STEP_HEIGHT) return true;
            Passage help = PASSAGE_CLOSED;
            for (int side = 0; side < 2 && help == PASSAGE_CLOSED; ++side) {
                help = help_by_sector(w, p, l.sector[side]);
                g.script.sector_frontier[l.sector[side]] = 1;
            }
            worst = help;
            return worst != PASSAGE_CLOSED;
        });
    });
    return worst;
}

// Whether the player gets along an edge from a node, and what it takes.
OFA_FUNCTION Passage passage(WorldBase& w, const Player& p, int node, const NavEdge& e) {
    if (e.kind == NAV_TELEPORT) return line_special(w, e.line).kind == KIND_TELEPORT ? PASSAGE_FREE : PASSAGE_CLOSED;
    const int here = w.subsectors[node].sector, there = w.subsectors[e.to].sector;
    if (fits_through(gap_of(w.g, here), gap_of(w.g, there))) {
        if (e.kind != NAV_MOVES) return PASSAGE_FREE;
        return probe_place(w, p, e.x * UNIT, e.y * UNIT, gap_of(w.g, here).floor, false);
    }
    if (w.g.script.despair && e.kind == NAV_OPEN) return PASSAGE_FREE;
    Gap from[4], to[3];
    int n_from = coming_gaps(w.g, here, from);
    const int n_to = coming_gaps(w.g, there, to);
    // Who has come into a shut door's sector has opened it.
    if (from[0].ceiling - from[0].floor < BODY_HEIGHT)
        from[n_from++] = {from[0].floor, lowest_ceiling_around(w, here) - DOOR_GAP};
    for (int i = 0; i < n_from; ++i)
        for (int k = 0; k < n_to; ++k)
            if (i + k > 0 && fits_through(from[i], to[k])) return PASSAGE_WAIT;
    if (!is_own_door_shut(w, p, e)) return PASSAGE_CLOSED;
    const Gap opened = {to[0].floor, lowest_ceiling_around(w, there) - DOOR_GAP};
    for (int i = 0; i < n_from; ++i)
        if (fits_through(from[i], opened)) return PASSAGE_DOOR;
    return PASSAGE_CLOSED;
}

OFA_FUNCTION int edge_cost(const Script& s, const NavEdge& e, int number, Passage how, int damage_cost) {
    int cost = e.cost + (((uint32_t(number) * 2654435761u) ^ s.random) >> 28);  // ties fall otherwise for each seed
    if (e.flags & NAV_DROP) cost += 128;
    if (e.flags & NAV_DAMAGE) cost += damage_cost;
    if (how == PASSAGE_DOOR) cost += 128;
    if (how == PASSAGE_WAIT) cost += 256;
    return cost + 1024 * s.edge_failures[number];
}

// --- a heap of nodes by distance -----------------------------------------------------------------------------------

OFA_FUNCTION void place_in_heap(Script& s, int at, int node) {
    s.heap[at] = node;
    s.heap_place[node] = at;
}

OFA_FUNCTION void rise_in_heap(Script& s, int at) {
    const int node = s.heap[at];
    while (at > 0 && s.distance[s.heap[(at - 1) / 2]] > s.distance[node]) {
        place_in_heap(s, at, s.heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place_in_heap(s, at, node);
}

OFA_FUNCTION int take_from_heap(Script& s) {
    const int first = s.heap[0];
    const int moved = s.heap[--s.heap_size];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= s.heap_size) break;
        if (child + 1 < s.heap_size && s.distance[s.heap[child + 1]] < s.distance[s.heap[child]]) ++child;
        if (s.distance[s.heap[child]] >= s.distance[moved]) break;
        place_in_heap(s, at, s.heap[child]);
        at = child;
    }
    place_in_heap(s, at, moved);
    return first;
}

OFA_FUNCTION int n_nav_nodes(const WorldBase& w) {
    const int n = int(w.level->nav_nodes.count);
    return n < MAX_NAV_NODES ? n : MAX_NAV_NODES;
}

// Whether an edge leads on from a strip too narrow to sink into, at the height of the node before it.
OFA_FUNCTION bool crosses_strip(const WorldBase& w, int node, const NavEdge& e) {
    const int before = w.g.script.came_from[node];
    if (e.kind != NAV_OPEN || before == NONE) return false;
    Gap from[3];
    const int n = coming_gaps(w.g, w.subsectors[before].sector, from);
    const Gap strip = gap_of(w.g, w.subsectors[node].sector), to = gap_of(w.g, w.subsectors[e.to].sector);
    for (int i = 0; i < n; ++i)
        if (from[i].floor > strip.floor && strip.ceiling - from[i].floor >= BODY_HEIGHT && fits_through(from[i], to))
            return true;
    return false;
}

// Distances from a node to all others. Sectors that bar a way to somewhere unreached become frontier sectors. Edges
// that failed often do not count, unless `stubborn`.
OFA_NOINLINE void find_ways(WorldBase& w, const Player& p, int start, bool stubborn) {
    Script& s = w.g.script;
    const NavNode* nodes = at(w.wad, w.level->nav_nodes);
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    const int n = n_nav_nodes(w);
    memset(s.sector_frontier, 0, sizeof s.sector_frontier);
    for (int i = 0; i < n; ++i) {
        s.distance[i] = UNREACHED;
        s.heap_place[i] = s.came_from[i] = s.came_by[i] = NONE;
    }
    const int damage_cost = p.health < 60 ? 4096 : 1024;
    s.heap_size = 0;
    if (start >= n) return;
    s.distance[start] = 0;
    place_in_heap(s, s.heap_size++, start);
    while (s.heap_size > 0) {
        const int node = take_from_heap(s);
        for (uint32_t i = 0; i < nodes[node].n_edges; ++i) {
            const int number = int(nodes[node].first_edge + i);
            const NavEdge& e = edges[number];
            if (e.to >= n || number >= MAX_NAV_EDGES || (s.edge_failures[number] >= 4 && !stubborn)) continue;
            Passage how = passage(w, p, node, e);
            if (how == PASSAGE_CLOSED && crosses_strip(w, node, e)) how = PASSAGE_WAIT;
            if (how == PASSAGE_CLOSED) continue;
            const int distance = s.distance[node] + edge_cost(s, e, number, how, damage_cost);
            if (distance >= s.distance[e.to]) continue;
            const bool waiting = s.distance[e.to] != UNREACHED;
            s.distance[e.to] = distance;
            s.came_from[e.to] = node;
            s.came_by[e.to] = number;
            if (!waiting) place_in_heap(s, s.heap_size++, e.to);
            rise_in_heap(s, s.heap_place[e.to]);
        }
    }
    for (int node = 0; node < n; ++node) {
        if (s.distance[node] == UNREACHED) continue;
        for (uint32_t i = 0; i < nodes[node].n_edges; ++i) {
            const NavEdge& e = edges[nodes[node].first_edge + i];
            if (e.kind != NAV_MOVES || e.to >= n || s.distance[e.to] != UNREACHED) continue;
            s.sector_frontier[w.subsectors[node].sector] = s.sector_frontier[w.subsectors[e.to].sector] = 1;
        }
    }
}

// The way found to a node into Script::path; only its first MAX_PATH edges if it is longer.
OFA_FUNCTION void take_way_to(Script& s, int node) {
    int length = 0;
    for (int i = node; s.came_from[i] != NONE; i = s.came_from[i]) ++length;
    int skip = length > MAX_PATH ? length - MAX_PATH : 0;
    s.path_length = 0;
    for (int i = node; s.came_from[i] != NONE; i = s.came_from[i])
        if (skip-- <= 0) s.path[s.path_length++] = s.came_by[i];
}

constexpr int CHECKED_EDGES = 48;

// Walks the path in thought. A subsector may be too narrow between two places where the player fits: the first edge
// that cannot be reached straight is marked as failed, and false returned.
OFA_FUNCTION bool check_path(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    const Mobj& m = w.g.mobjs[p.mobj];
    Fixed x = m.x, y = m.y;
    int node = m.subsector;
    Fixed before = m.z;
    for (int i = s.path_length - 1; i >= 0 && i >= s.path_length - CHECKED_EDGES; --i) {
        const NavEdge& e = edges[s.path[i]];
        const Fixed dx = e.x * UNIT - x, dy = e.y * UNIT - y;
        const Fixed here = gap_of(w.g, w.subsectors[node].sector).floor;
        const Fixed floor = here > before ? here : before;   // who comes off a ledge is still up there at first
        before = here;
        const int steps = approximate_distance(dx, dy) / (16 * UNIT);
        for (int k = 1; k < steps; ++k) {
            if (probe_place(w, p, x + dx / steps * k, y + dy / steps * k, floor, true) != PASSAGE_CLOSED) continue;
            s.edge_failures[s.path[i]] = uint8_t(s.edge_failures[s.path[i]] + (i == s.path_length - 1 ? 1 : 2));
            return false;
        }
        if (e.kind == NAV_TELEPORT) return true;
        x = e.x * UNIT;
        y = e.y * UNIT;
        node = e.to;
    }
    return true;
}

}  // namespace doom
