// The renderer behind C functions, and a Game filled from tables of objects and sectors instead of by the simulation.
#include "doom/host/lanes.h"
#include "doom/render/draw.h"

using namespace doom;

namespace {

int32_t subsector_of(const WadBlob& wad, const Level& level, Fixed x, Fixed y) {
  if (level.nodes.count == 0) return 0;
  uint32_t child = level.nodes.count - 1;
  while (!(child & NODE_SUBSECTOR)) {
    const MapNode& n = at(wad, level.nodes)[child];
    child = n.child[render::is_right_of(x, y, n.x, n.y, n.dx, n.dy) ? 0 : 1];
  }
  return int32_t(child & ~uint32_t(NODE_SUBSECTOR));
}

void look_of_state(const WadBlob& wad, int32_t number, int16_t& sprite, uint16_t& frame) {
  const State& state = at(wad, wad.states)[number];
  sprite = state.sprite;
  frame = uint16_t(state.frame | (state.bright ? 0x8000 : 0));
}

}  // namespace

extern "C" {

uint64_t game_bytes() { return sizeof(Game); }
uint64_t scratch_bytes() { return sizeof(RenderScratch); }

// The level as its lumps describe it, without objects. `tics`: since it was loaded, for animations and scrollers.
void load_level(Game* g, const WadBlob* wad, int level_index, int sky, int tics) {
  const Level& level = at(*wad, wad->levels)[level_index];
  memset(g, 0, sizeof *g);
  g->level = level_index;
  g->sky = uint8_t(sky);
  g->level_tics = tics;
  g->n_sectors = int32_t(level.sectors.count);
  g->n_lines = int32_t(level.lines.count);
  g->n_sides = int32_t(level.sides.count);
  for (int i = 0; i < g->n_sectors; ++i) {
    const MapSector& m = at(*wad, level.sectors)[i];
    Sector& s = g->sectors[i];
    s.floor_height = m.floor_height;
    s.ceiling_height = m.ceiling_height;
    s.floor_flat = m.floor_flat;
    s.ceiling_flat = m.ceiling_flat;
    s.light = m.light;
    s.special = m.special;
    s.objects = NONE;
  }
  for (int i = 0; i < g->n_sides; ++i) {
    const MapSide& m = at(*wad, level.sides)[i];
    g->sides[i] = {m.x_offset, m.y_offset, m.top, m.bottom, m.middle};
  }
  for (int i = 0; i < g->n_lines; ++i) {
    const MapLine& m = at(*wad, level.lines)[i];
    g->lines[i].flags = m.flags;
    if (m.special == 48) g->sides[m.side[0]].x_offset += tics * 65536;
  }
  g->players[0].mobj = NONE;
  g->players[0].sprites[0].state = g->players[0].sprites[1].state = -1;
}

// rows of (floor height, ceiling height, light, special, floor flat)
void set_sectors(Game* g, const int32_t* rows) {
  for (int i = 0; i < g->n_sectors; ++i, rows += 5) {
    Sector& s = g->sectors[i];
    s.floor_height = rows[0];
    s.ceiling_height = rows[1];
    s.light = int16_t(rows[2]);
    s.special = int16_t(rows[3]);
    s.floor_flat = int16_t(rows[4]);
  }
}

// rows of 22 columns: type, x, y, z, angle, health, state, tics, momentum, flags (11), ...
void set_objects(Game* g, const WadBlob* wad, const int32_t* rows, int n) {
  const Level& level = at(*wad, wad->levels)[g->level];
  for (int i = 0; i < g->n_sectors; ++i) g->sectors[i].objects = NONE;
  for (int i = 0; i < n; ++i, rows += 22) {
    Mobj& m = g->mobjs[i];
    m.type = int16_t(rows[0]);
    m.x = rows[1];
    m.y = rows[2];
    m.z = rows[3];
    m.angle = Angle(rows[4]);
    m.state = int16_t(rows[6]);
    m.flags = uint32_t(rows[11]);
    look_of_state(*wad, m.state, m.sprite, m.frame);
    m.subsector = subsector_of(*wad, level, m.x, m.y);
    m.sector = at(*wad, level.subsectors)[m.subsector].sector;
    m.sector_next = NONE;
    if (m.flags & MF_NOSECTOR) continue;
    m.sector_next = g->sectors[m.sector].objects;
    g->sectors[m.sector].objects = i;
  }
}

// The eye is object `mobj`; weapon: 2 rows of (state, tics, sx, sy).
void set_player(Game* g, const WadBlob* wad, int mobj, Fixed view_z, Angle angle, int extra_light, int fixed_colormap,
                int invisible_tics, const int32_t* weapon) {
  Player& p = g->players[0];
  p.mobj = mobj;
  g->mobjs[mobj].angle = angle;
  p.view_z = view_z;
  p.extra_light = extra_light;
  p.fixed_colormap = fixed_colormap;
  p.powers[POWER_INVISIBLE] = invisible_tics;
  for (int i = 0; i < 2; ++i, weapon += 4) {
    WeaponSprite& w = p.sprites[i];
    w.state = weapon[0];
    if (w.state < 0) continue;
    w.sx = weapon[2];
    w.sy = weapon[3];
    look_of_state(*wad, w.state, w.sprite, w.frame);
  }
}

// health, armor, ready weapon, face, ammunition (4), its limits (4), weapons (9), keys (6), cooperative, viewed
void set_status(Game* g, const int32_t* v) {
  Player& p = g->players[0];
  p.health = *v++;
  p.armor = *v++;
  p.ready_weapon = int8_t(*v++);
  g->status_bar.face = *v++;
  for (int16_t& n : p.ammo) n = int16_t(*v++);
  for (int16_t& n : p.max_ammo) n = int16_t(*v++);
  for (uint8_t& n : p.weapon_owned) n = uint8_t(*v++);
  for (uint8_t& n : p.cards) n = uint8_t(*v++);
  g->cooperative = uint8_t(*v++);
  g->viewed = uint8_t(*v);
  if (g->viewed) g->players[g->viewed] = p;
}

void set_fuzz(Game* g, int position) { g->fuzz_position = position; }

// threads 0: the CPU's own block.
void draw(Game* g, const WadBlob* wad, RenderScratch* scratch, uint8_t* frame, int threads) {
  if (threads == 0) {
    ofa::Block block(0, nullptr, 0);
    doom_draw(block, *g, *wad, *scratch, frame);
  } else {
    ReversedLanes block(threads);
    doom_draw(block, *g, *wad, *scratch, frame);
  }
}

int count(const RenderScratch* s, int what) {
  const int32_t counts[] = {s->n_draw_segs, s->n_planes, s->n_sprites, s->n_columns, s->n_fuzzy, s->planes_overlap};
  return counts[what];
}

}  // extern "C"
