// Shortest ways over the navigation graph as the level stands, worked out a piece at a time.
//
// Dijkstra's method from where the player stands. What is barred costs OBSTACLE on top, so that every place that can be
// reached as things are is nearer than OBSTACLE, and the way to any other begins with a way to its first obstacle.
#pragma once

#include "fight.h"
#include "passage.h"

namespace doom {

constexpr int UNREACHED = 0x7FFFFFFF, OBSTACLE = 1 << 22, FARTHEST = 1 << 30;
constexpr int EDGES_A_TIC = 1500;         // looked at in one tic: keeps a thought far below a tic on a slow thread
constexpr int EDGE_FAILURES = 4;          // so often an edge has to fail before it counts as closed
constexpr int TRAP_COST = 1 << 18;

OFA_FUNCTION int n_nav_nodes(const WorldBase& w) {
    const int n = int(w.level->nav_nodes.count);
    return n < MAX_NAV_NODES ? n : MAX_NAV_NODES;
}

OFA_FUNCTION int distance_to(const Script& s, int node) {
    return node < 0 || node >= MAX_NAV_NODES ? UNREACHED : s.distance[node];
}

OFA_FUNCTION bool can_reach(const Script& s, int node) { return distance_to(s, node) < OBSTACLE; }

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

// --- costs -------------------------------------------------------------------------------------------------------

// In map units. Ties fall otherwise for each seed.
OFA_FUNCTION int edge_cost(const WorldBase& w, const Player& p, const NavEdge& e, int number, Passage how) {
    const Script& s = w.g.script;
    int cost = e.cost + (((uint32_t(number) * 2654435761u) ^ s.random_ties) >> 28);
    if (e.flags & NAV_DROP) cost += 64;
    if (e.flags & NAV_TRAP) cost += TRAP_COST;
    if (hurts(w.g, w.subsectors[e.to].sector) && !p.powers[POWER_SUIT]) cost += 64 + e.cost * (p.health < 50 ? 16 : 6);
    if (how == PASSAGE_DOOR) cost += 128;
    if (how == PASSAGE_WAIT) cost += 256;
    if (how == PASSAGE_BARRED) cost += OBSTACLE;
    return cost + 1024 * s.edge_failures[number] + s.node_danger[e.to] * 64;
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

// --- the search ----------------------------------------------------------------------------------------------------

// Bosses whose death moves something, and how many monsters are about each node.
OFA_FUNCTION void look_at_monsters(WorldBase& w) {
    Game& g = w.g;
    Script& s = g.script;
    s.bosses[0] = s.bosses[1] = s.exit_boss = NONE;
    memset(s.node_danger, 0, sizeof s.node_danger);
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ) continue;
        const Mobj& m = g.mobjs[node];
        if (!(m.flags & MF_SHOOTABLE) || m.health <= 0) continue;
        if (ends_level_by_death(g, m.type)) s.exit_boss = node;
        for (int i = 0; i < 2; ++i)
            if (m.type == boss_type(g, 666 + i)) s.bosses[i] = node;
        if (!is_enemy(m) || m.subsector >= MAX_NAV_NODES || s.node_danger[m.subsector] > 200) continue;
        s.node_danger[m.subsector] = uint8_t(s.node_danger[m.subsector] + danger_of(m.type));
    }
}

OFA_FUNCTION void begin_search(WorldBase& w, int start) {
    Script& s = w.g.script;
    const int n = n_nav_nodes(w);
    for (int i = 0; i < n; ++i) {
        s.distance[i] = UNREACHED;
        s.heap_place[i] = s.came_from[i] = s.came_by[i] = NONE;
    }
    look_at_monsters(w);
    ++s.search_number;
    s.heap_size = 0;
    s.searching = 1;
    if (start >= n) return;
    s.distance[start] = 0;
    place_in_heap(s, s.heap_size++, start);
}

OFA_FUNCTION void look_along_edge(WorldBase& w, const Player& p, int node, int number) {
    Script& s = w.g.script;
    const NavEdge& e = at(w.wad, w.level->nav_edges)[number];
    if (e.to >= n_nav_nodes(w) || number >= MAX_NAV_EDGES) return;
    if (s.edge_failures[number] >= EDGE_FAILURES && !s.stubborn) return;
    int bar;
    Passage how = passage(w, p, node, e, bar);
    if (how != PASSAGE_FREE && how != PASSAGE_WAIT && crosses_strip(w, node, e)) how = PASSAGE_WAIT;
    if (how == PASSAGE_CLOSED) return;
    const int distance = s.distance[node] + edge_cost(w, p, e, number, how);
    if (distance >= s.distance[e.to] || distance > FARTHEST) return;
    const bool waiting = s.distance[e.to] != UNREACHED;
    s.distance[e.to] = distance;
    s.came_from[e.to] = node;
    s.came_by[e.to] = number;
    if (!waiting) place_in_heap(s, s.heap_size++, e.to);
    rise_in_heap(s, s.heap_place[e.to]);
}

// One tic's share of the search; true when it is done.
OFA_NOINLINE bool advance_search(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const NavNode* nodes = at(w.wad, w.level->nav_nodes);
    for (int looked = 0; looked < EDGES_A_TIC && s.heap_size > 0;) {
        const int node = take_from_heap(s);
        for (uint32_t i = 0; i < nodes[node].n_edges; ++i) look_along_edge(w, p, node, int(nodes[node].first_edge + i));
        looked += int(nodes[node].n_edges);
    }
    s.searching = s.heap_size > 0;
    return !s.searching;
}

// --- the way found -------------------------------------------------------------------------------------------------

// Number of the first barred edge on the way to a node, and the node it starts from; NONE if nothing bars the way.
OFA_FUNCTION int first_obstacle(const Script& s, int node, int& from) {
    int first = NONE;
    for (int i = node; s.came_from[i] != NONE; i = s.came_from[i]) {
        if (s.distance[i] - s.distance[s.came_from[i]] < OBSTACLE) continue;
        first = s.came_by[i];
        from = s.came_from[i];
    }
    return first;
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

}  // namespace doom
