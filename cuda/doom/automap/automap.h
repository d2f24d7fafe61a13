// The map over the view: the lines that were seen, by the original's colours, and the players as arrows.
//
// The view is drawn first, as if there were no map, so that looking at the map changes nothing of the game: lines are
// seen (LINE_MAPPED) and the fuzz runs on. In this the original differs; there nothing is seen while the map is up.
#pragma once

#include "../render/draw.h"
#include "strokes.h"

namespace doom {
namespace automap {

using render::FIXED_BITS;
using render::max;
using render::min;

enum Mode : int32_t { MODE_OFF, MODE_FOLLOW, MODE_STAY, MODES };

constexpr int LOWEST_ZOOM = -6, HIGHEST_ZOOM = 18;   // in steps of 5/4
constexpr int64_t FURTHEST_ZOOM = 1 << 10;           // scale of the least that is shown, 1/64 pixel a map unit
constexpr int PLAYER_LINES = 7;
constexpr int MAX_STROKES = MAX_LINES + MAX_PLAYERS * PLAYER_LINES;

enum Color : uint8_t {
    COLOR_NOTHING = 0, COLOR_WALL = 176, COLOR_TELEPORTER = 184, COLOR_FLOOR = 64, COLOR_CEILING = 231,
    COLOR_UNSEEN = 99, COLOR_PLAYER = 209, COLOR_INVISIBLE = 246
};
OFA_TABLE uint8_t PLAYER_COLORS[MAX_PLAYERS] = {112, 96, 64, 176};   // of a game of several
constexpr int SPECIAL_TELEPORT = 39;

// What the map looks like, and what drawing it needs. All zero: off.
struct Automap {
    int32_t mode, zoom;
    int32_t x, y;                           // MODE_STAY: map units from the anchor
    Fixed anchor_x, anchor_y;               // where the player was when the map stopped following
    uint32_t loads;                         // Game::loads of the level that the rest belongs to
    Fixed center_x, center_y;
    int64_t scale;                          // 1/65536 pixel a map unit
    int32_t n_strokes;
    Stroke strokes[MAX_STROKES];
};

OFA_FUNCTION void set_anchor(Automap& m, const Game& g) {
    const Mobj& player = g.mobjs[g.players[g.viewed].mobj];
    m.anchor_x = player.x;
    m.anchor_y = player.y;
    m.loads = g.loads;
}

// The scale at which the level just fits the view.
OFA_FUNCTION int64_t fitting_scale(const WadBlob& wad, const Level& level) {
    const MapVertex* vertices = at(wad, level.vertices);
    Fixed left = FIXED_MAX, right = FIXED_MIN, bottom = FIXED_MAX, top = FIXED_MIN;
    for (uint32_t i = 0; i < level.vertices.count; ++i) {
        left = min(left, vertices[i].x);
        right = max(right, vertices[i].x);
        bottom = min(bottom, vertices[i].y);
        top = max(top, vertices[i].y);
    }
    const int64_t width = (int64_t(right) - left) / UNIT + 1, height = (int64_t(top) - bottom) / UNIT + 1;
    const int64_t across = int64_t(WIDTH) * UNIT / width, down = int64_t(HEIGHT) * UNIT / height;
    return across < down ? across : down;
}

// What the frame's map shows of the level.
OFA_FUNCTION void set_up_map(Automap& m, const Game& g, const WadBlob& wad) {
    const Mobj& player = g.mobjs[g.players[g.viewed].mobj];
    if (m.loads != g.loads) set_anchor(m, g);
    const bool stays = m.mode == MODE_STAY;
    m.center_x = stays ? wrap_add(m.anchor_x, wrap_mul(m.x, UNIT)) : player.x;
    m.center_y = stays ? wrap_add(m.anchor_y, wrap_mul(m.y, UNIT)) : player.y;
    m.scale = fitting_scale(wad, at(wad, wad.levels)[g.level]) * 10 / 7;
    for (int i = 0; i < m.zoom; ++i) m.scale = m.scale * 5 / 4;
    for (int i = 0; i > m.zoom; --i) m.scale = m.scale * 4 / 5;
    if (m.scale < FURTHEST_ZOOM) m.scale = FURTHEST_ZOOM;
    m.n_strokes = g.n_lines;
}

OFA_INLINE Place on_screen(const Automap& m, Fixed x, Fixed y) {
    constexpr int SHIFT = 2 * FIXED_BITS - PART_BITS;
    return {WIDTH * PART / 2 + (((int64_t(x) - m.center_x) * m.scale) >> SHIFT),
            HEIGHT * PART / 2 - (((int64_t(y) - m.center_y) * m.scale) >> SHIFT)};
}

// Secret doors look like walls, and openings without a step are not shown.
OFA_FUNCTION Color line_color(const Game& g, const MapLine& map, const Line& line) {
    if (line.flags & LINE_DONT_DRAW) return COLOR_NOTHING;
    if (!(line.flags & LINE_MAPPED)) return g.players[g.viewed].powers[POWER_MAP] ? COLOR_UNSEEN : COLOR_NOTHING;
    if (map.sector[1] < 0) return COLOR_WALL;
    if (line.special == SPECIAL_TELEPORT) return COLOR_TELEPORTER;
    if (line.flags & LINE_SECRET) return COLOR_WALL;
    const Sector &front = g.sectors[map.sector[0]], &back = g.sectors[map.sector[1]];
    if (front.floor_height != back.floor_height) return COLOR_FLOOR;
    if (front.ceiling_height != back.ceiling_height) return COLOR_CEILING;
    return COLOR_NOTHING;
}

OFA_INLINE Stroke stroke_of_line(const Automap& m, const Game& g, const WadBlob& wad, const Level& level, int i) {
    const MapLine& line = at(wad, level.lines)[i];
    const Color color = line_color(g, line, g.lines[i]);
    if (color == COLOR_NOTHING) return {};
    const MapVertex& a = at(wad, level.vertices)[line.v1];
    const MapVertex& b = at(wad, level.vertices)[line.v2];
    return stroke_between(on_screen(m, a.x, a.y), on_screen(m, b.x, b.y), color);
}

// A shaft, a head and two pairs of feathers, for a player that looks east.
struct ArrowLine {
    int8_t x0, y0, x1, y1;
};
OFA_TABLE ArrowLine PLAYER_ARROW[PLAYER_LINES] = {{-7, 0, 8, 0},   {8, 0, 4, 2},    {8, 0, 4, -2},  {-7, 0, -9, 2},
                                                  {-7, 0, -9, -2}, {-5, 0, -7, 2}, {-5, 0, -7, -2}};
constexpr Fixed ARROW_UNIT = 16 * UNIT / 7;     // the head is 8 of these, 8/7 of a player's radius, before the middle

OFA_INLINE Place arrow_point(const Automap& m, const WadBlob& wad, const Mobj& player, int x, int y) {
    const Fixed along = x * ARROW_UNIT, aside = y * ARROW_UNIT;
    const Fixed sine = render::fine_sine(wad, player.angle), cosine = render::fine_cosine(wad, player.angle);
    return on_screen(m, wrap_add(player.x, fixed_mul(along, cosine) - fixed_mul(aside, sine)),
                     wrap_add(player.y, fixed_mul(along, sine) + fixed_mul(aside, cosine)));
}

OFA_FUNCTION void add_players(Automap& m, const Game& g, const WadBlob& wad) {
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!g.present[i]) continue;
        const Player& player = g.players[i];
        const bool several = g.cooperative || g.deathmatch;
        const uint8_t color = !several ? uint8_t(COLOR_PLAYER)
                              : player.powers[POWER_INVISIBLE] ? uint8_t(COLOR_INVISIBLE) : PLAYER_COLORS[i];
        for (const ArrowLine& l : PLAYER_ARROW)
            m.strokes[m.n_strokes++] = stroke_between(arrow_point(m, wad, g.mobjs[player.mobj], l.x0, l.y0),
                                                      arrow_point(m, wad, g.mobjs[player.mobj], l.x1, l.y1), color);
    }
}

// The level's lump name, at the lower left.
OFA_FUNCTION void place_level_name(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Level& level = at(wad, wad.levels)[game.level];
    char name[sizeof level.name + 1] = {};
    for (unsigned i = 0; i < sizeof level.name; ++i) name[i] = level.name[i];
    render::place_text(s, wad, name, 1, HEIGHT - 9);
}

// All threads: later strokes cover earlier ones in every column, whoever draws it.
template <class Block>
OFA_FUNCTION void draw_strokes(Block& block, const Automap& m, uint8_t* frame) {
    block.for_each(WIDTH * HEIGHT, [&](int64_t i) { frame[i] = COLOR_NOTHING; });
    block.sync();
    const int n_strips = min(block.threads(), WIDTH);
    block.for_each(n_strips, [&](int64_t index) {
        const int first = int(index * WIDTH / n_strips), last = int((index + 1) * WIDTH / n_strips) - 1;
        for (int i = 0; i < m.n_strokes; ++i)
            if (m.strokes[i].color != COLOR_NOTHING) draw_stroke(frame, m.strokes[i], first, last);
    });
    block.sync();
}

}  // namespace automap

using automap::Automap;

// Switches the map on and off and moves it; what is out of range is brought into it.
OFA_FUNCTION void doom_set_automap(Automap& m, const Game& g, int mode, int zoom, int x, int y) {
    const bool stood = m.mode == automap::MODE_STAY;
    m.mode = mode < 0 || mode >= automap::MODES ? automap::MODE_OFF : mode;
    m.zoom = render::clamp(zoom, automap::LOWEST_ZOOM, automap::HIGHEST_ZOOM);
    m.x = x;
    m.y = y;
    if (!stood && g.tic != 0) automap::set_anchor(m, g);
}

// Draws the map, if it is on, over a finished frame, 320x200 palette indices; the status bar stays.
template <class Block>
OFA_FUNCTION void doom_draw_automap(Block& block, const Game& game, const WadBlob& wad, RenderScratch& scratch,
                                    Automap& m, uint8_t* frame) {
    if (m.mode == automap::MODE_OFF || game.mode != MODE_LEVEL) return;
    const Level& level = at(wad, wad.levels)[game.level];
    block.sync();
    if (block.leader()) automap::set_up_map(m, game, wad);
    block.sync();
    block.for_each(game.n_lines,
                   [&](int64_t i) { m.strokes[i] = automap::stroke_of_line(m, game, wad, level, int(i)); });
    if (block.leader()) automap::add_players(m, game, wad);
    block.sync();
    automap::draw_strokes(block, m, frame);
    render::draw_placed<automap::place_level_name>(block, game, wad, scratch, frame);
    render::draw_text(block, game, wad, scratch, frame);
}

}  // namespace doom
