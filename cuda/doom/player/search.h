// Shortest ways over the navigation graph as the level stands, worked out a piece at a time.
//
// Dijkstra's method from where the player stands, in layers. The first layer is what can be reached as things are. The
// next is what can be reached once something has been done that is within reach by then: a trigger of the first layer
// used, a key of it taken. And so on, so that whatever is reached at all is reached by a plan without a circle.
#pragma once

#include "fight.h"
#include "remedy.h"

namespace doom {

constexpr int FARTHEST = 1 << 30;
constexpr int EDGES_A_TIC = 1500;         // looked at in one tic: keeps a thought far below a tic on a slow thread
constexpr int EDGE_FAILURES = 4;          // so often an edge has to fail before it counts as closed
constexpr int TRAP_COST = 1 << 18;

OFA_FUNCTION int n_nav_nodes(const WorldBase& w) {
    const int n = int(w.level->nav_nodes.count);
    return n < MAX_NAV_NODES ? n : MAX_NAV_NODES;
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
    return cost + 1024 * s.edge_failures[number] + s.node_danger[e.to] * 64 * character_of(w.g).fear;
}

// Whether an edge leads on from a strip too narrow to sink into, at the height of the node before it.
OFA_FUNCTION bool crosses_strip(const WorldBase& w, int node, const NavEdge& e) {
    const int before = w.g.script.came_from[node];
    if (e.kind != NAV_OPEN || before == NONE) return false;
    Gap from[3];
    const int n = coming_gaps(w.g, w.subsectors[before].sector, from);
    const Gap strip = gap_of(w.g, w.subsectors[node].sector), to = gap_of(w.g, w.subsectors[e.to].sector);
    for (int i = 0; i < n; ++i)
        if (from[i].floor > strip.floor && wrap_sub(strip.ceiling, from[i].floor) >= BODY_HEIGHT && fits_through(from[i], to))
            return true;
    return false;
}

// --- the search ----------------------------------------------------------------------------------------------------

// Notes keys, bosses whose death moves something, and how dangerous each node is.
OFA_FUNCTION void look_at_things(WorldBase& w) {
    Game& g = w.g;
    Script& s = g.script;
    s.bosses[0] = s.bosses[1] = s.exit_boss = NONE;
    s.n_keys = 0;
    memset(s.node_danger, 0, sizeof s.node_danger);
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ) continue;
        const Mobj& m = g.mobjs[node];
        if ((m.flags & MF_SPECIAL) && key_colour(m.type) && s.n_keys < MAX_KEYS) s.keys[s.n_keys++] = node;
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
    look_at_things(w);
    ++s.search_number;
    s.heap_size = s.layer = s.n_barred = 0;
    s.searching = 1;
    if (start >= n) return;
    s.distance[start] = 0;
    place_in_heap(s, s.heap_size++, start);
}

OFA_FUNCTION void reach_node(Script& s, int node, int from, int by, int distance) {
    if (distance >= s.distance[node] || distance > FARTHEST) return;
    const bool waiting = s.distance[node] != UNREACHED;
    s.distance[node] = distance;
    s.came_from[node] = from;
    s.came_by[node] = by;
    if (!waiting) place_in_heap(s, s.heap_size++, node);
    rise_in_heap(s, s.heap_place[node]);
}

OFA_FUNCTION void look_along_edge(WorldBase& w, const Player& p, int node, int number) {
    Script& s = w.g.script;
    const NavEdge& e = at(w.wad, w.level->nav_edges)[number];
    if (e.to >= n_nav_nodes(w) || number >= MAX_NAV_EDGES || s.distance[e.to] <= s.distance[node]) return;
    if (s.edge_failures[number] >= EDGE_FAILURES && !s.stubborn) return;
    int bar;
    Passage how = passage(w, p, node, e, bar);
    if (e.flags & NAV_FROM_ABOVE ? true : how != PASSAGE_FREE && how != PASSAGE_WAIT) {
        if (crosses_strip(w, node, e)) how = PASSAGE_WAIT;
        else if (e.flags & NAV_FROM_ABOVE) return;
    }
    if (how == PASSAGE_CLOSED) return;
    if (how != PASSAGE_BARRED) reach_node(s, e.to, node, number, s.distance[node] + edge_cost(w, p, e, number, how));
    else if (s.n_barred < MAX_BARRED) s.barred[s.n_barred++] = {node, number};
}

// Begins the next layer: with the barred edges for which something in the layers before is a remedy.
OFA_FUNCTION void open_barred_edges(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    ++s.layer;
    const int limit = s.layer * OBSTACLE;
    int kept = 0;
    for (int i = 0; i < s.n_barred; ++i) {
        const BarredEdge b = s.barred[i];
        const NavEdge& e = edges[b.edge];
        if (s.distance[e.to] < limit) continue;
        Wish wish;
        if (find_remedy(w, p, b.from, b.edge, limit, wish)) {
            const int cost = edge_cost(w, p, e, b.edge, PASSAGE_BARRED);
            reach_node(s, e.to, b.from, b.edge, limit + s.distance[b.from] % OBSTACLE + cost);
        } else {
            s.barred[kept++] = b;
        }
    }
    s.n_barred = kept;
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
    if (s.heap_size == 0) open_barred_edges(w, p);
    s.searching = s.heap_size > 0;
    return !s.searching;
}

// --- the way found -------------------------------------------------------------------------------------------------

OFA_FUNCTION int layer_of(const Script& s, int node) { return s.distance[node] / OBSTACLE; }

// Number of the first barred edge on the way to a node, and the node it starts from; NONE if nothing bars the way.
OFA_FUNCTION int first_obstacle(const Script& s, int node, int& from) {
    int first = NONE;
    for (int i = node; s.came_from[i] != NONE; i = s.came_from[i]) {
        if (layer_of(s, i) == layer_of(s, s.came_from[i])) continue;
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
