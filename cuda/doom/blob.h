// Layout of a packed WAD: everything the engine reads and never writes, in one relocatable piece of memory.
//
// Written by ofa_tui/doom/packer.py (dtypes in ofa_tui/doom/layout.py; a test compares both). Little-endian, no
// pointers: a Span says where an array starts, in bytes from the start of the blob, and how many elements it has. Every
// array starts at a multiple of 16 bytes. The packer has checked every index in here, so the engine need not.
// Fixed = 16.16 in map units; angles are binary (2^32 = full circle). Names are 8 bytes, upper case, padded with zeros.
#pragma once

#include <stdint.h>

#include "../platform/platform.h"

namespace doom {

constexpr uint32_t BLOB_MAGIC = 0x4D4F4F44;   // "DOOM"
constexpr uint32_t BLOB_VERSION = 1;

template <class T>
struct Span {
    uint32_t offset;      // bytes from the start of the blob
    uint32_t count;       // elements
};

// --- pictures ---------------------------------------------------------------------------------------------------

// A picture of columns of posts: sprites, status bar, font, wall patches. `columns[x]` is the offset (from the start of
// the blob) of column x's first post: bytes row, length, one unused, `length` pixels, one unused; 255 as row ends it.
// The whole lump is kept in its own order, followed by PATCH_PADDING zeros and PATCH_END bytes 255, so that a read past
// the end of a column sees what the original sees in the lump, zeros after it, and a walk over posts always ends: also
// one that takes the last zero for a row and the 255 behind it for a length.
struct Patch {
    char name[8];
    int16_t width, height;
    int16_t left, top;    // the picture's origin, in pixels from its upper left corner
    Span<uint32_t> columns;
    Span<uint8_t> lump;
};
constexpr int PATCH_PADDING = 520, PATCH_END = 264;

// A wall texture. `columns[x & width_mask]` is the offset of the column's pixels (row 0); the pixel in row y is
// byte y & 127 from there. A column that one patch covers points straight into that patch's lump (behind the first
// post's header, wherever that post starts); the others were composed. Columns of a masked texture are posts: their
// first header is 3 bytes before.
struct Texture {
    char name[8];
    int16_t width, height;
    uint32_t width_mask;  // largest power of two that is not above the width, minus 1
    Span<uint32_t> columns;
};

// The eight views of one frame of a sprite: patch[i] is rotation i + 1 of the lump names, patch[0] the front. Without
// rotations all are equal.
struct SpriteFrame {
    int16_t patch[8];     // -1: the WAD lacks it
    uint8_t flip[8];      // mirrored
    uint8_t rotates;
    uint8_t _pad[7];
};

struct Sprite {
    char name[8];         // four letters
    uint32_t first_frame; // in WadBlob::sprite_frames
    uint32_t n_frames;
};

// Pictures found by name; WadBlob::graphics[GRAPHIC_...] is a patch index or -1. Families are numbered onwards.
enum Graphic : int32_t {
    GRAPHIC_STBAR,
    GRAPHIC_STARMS,
    GRAPHIC_STTMINUS,
    GRAPHIC_STTPRCNT,
    GRAPHIC_STTNUM,                               // 10 digits, large red
    GRAPHIC_STGNUM = GRAPHIC_STTNUM + 10,         // 10 digits, small grey
    GRAPHIC_STYSNUM = GRAPHIC_STGNUM + 10,        // 10 digits, small yellow
    GRAPHIC_STKEYS = GRAPHIC_STYSNUM + 10,        // 6 keys: blue, yellow, red card; the same as skulls
    GRAPHIC_STFACE = GRAPHIC_STKEYS + 6,          // 42 faces in the order of the face index
    GRAPHIC_STFB = GRAPHIC_STFACE + 42,           // 4 face backgrounds
    GRAPHIC_STCFN = GRAPHIC_STFB + 4,             // 63 characters, '!' (33) to '_' (95)
    GRAPHIC_WINUM = GRAPHIC_STCFN + 63,           // 10 digits of the intermission
    GRAPHIC_WIMINUS = GRAPHIC_WINUM + 10,
    GRAPHIC_WIPCNT,
    GRAPHIC_WICOLON,
    GRAPHIC_WIF,                                  // "finished"
    GRAPHIC_WIENTER,
    GRAPHIC_WIOSTK,                               // "kills"
    GRAPHIC_WIOSTI,                               // "items"
    GRAPHIC_WISCRT2,                              // "secret"
    GRAPHIC_WITIME,
    GRAPHIC_WIPAR,
    GRAPHIC_WISUCKS,
    GRAPHIC_WISPLAT,
    GRAPHIC_WIURH,                                // 2 "you are here" arrows
    GRAPHIC_WIMAP = GRAPHIC_WIURH + 2,            // 3 maps of episodes
    GRAPHIC_INTERPIC = GRAPHIC_WIMAP + 3,
    GRAPHIC_WIA,                                  // 3 episodes x 10 animations x 3 frames
    GRAPHIC_WILV = GRAPHIC_WIA + 90,              // level names: 4 episodes x 9, or 32 of Doom II
    GRAPHIC_WIKILRS = GRAPHIC_WILV + 36,
    GRAPHIC_WIVCTMS,
    GRAPHIC_WIMSTT,
    GRAPHIC_WIFRGS,
    GRAPHIC_WIOSTS,
    GRAPHIC_WIP,                                  // 4 players
    GRAPHIC_WIBP = GRAPHIC_WIP + 4,
    GRAPHIC_STPB = GRAPHIC_WIBP + 4,              // 4 player backgrounds
    GRAPHIC_TITLEPIC = GRAPHIC_STPB + 4,
    GRAPHIC_CREDIT,
    GRAPHIC_VICTORY2,
    GRAPHIC_ENDPIC,
    GRAPHIC_BOSSBACK,
    GRAPHIC_PFUB,                                 // 2 halves of the scrolling end picture
    GRAPHIC_END = GRAPHIC_PFUB + 2,               // 7 frames of the end animation
    GRAPHIC_M_PAUSE = GRAPHIC_END + 7,
    GRAPHIC_BRDR,                                 // 8 border pieces: TL T TR L R BL B BR
    GRAPHICS = GRAPHIC_BRDR + 8
};

// Textures or flats that follow each other in time: for number i from `base` to `base + n - 1`, number
// base + (level_tics / tics + i) % n is shown.
struct Animation {
    int16_t is_texture;
    int16_t base, n;
    int16_t tics;
};

struct SwitchPair {
    int16_t off, on;      // texture numbers
};

// --- levels -----------------------------------------------------------------------------------------------------

struct MapVertex {
    int32_t x, y;         // fixed
};

struct MapSector {
    int32_t floor_height, ceiling_height;   // fixed, as on level start
    int16_t floor_flat, ceiling_flat;       // numbers; WadBlob::sky_flat is the sky
    int16_t light, special, tag;
    int16_t _pad;
    int32_t sound_x, sound_y;               // fixed; centre of the bounding box of its lines
    int32_t block_box[4];                   // top, bottom, left, right in blockmap cells, grown by 32 units, inside the map
    uint32_t first_line, n_lines;           // in Level::sector_lines: its lines in map order
};

struct MapSide {
    int32_t x_offset, y_offset;             // fixed
    int16_t top, bottom, middle;            // texture numbers, 0 = none
    int16_t sector;
};

enum Slope : int8_t { SLOPE_HORIZONTAL, SLOPE_VERTICAL, SLOPE_POSITIVE, SLOPE_NEGATIVE };

struct MapLine {
    int32_t v1, v2;
    int32_t dx, dy;                         // fixed, v2 - v1
    int32_t box[4];                         // top, bottom, left, right; fixed
    int16_t flags, special, tag;
    int8_t slope, _pad;
    int32_t side[2];                        // front, back; -1 for none
    int32_t sector[2];                      // front, back; -1 for none
};

struct MapSeg {
    int32_t v1, v2;
    uint32_t angle;
    int32_t offset;                         // fixed, along the line from its start as seen from `side`
    int32_t line, side;                     // `side` is an index into Level::sides
    int32_t front, back;                    // sectors; back is -1 unless the line is flagged two-sided
};

struct MapSubsector {
    uint32_t first_seg, n_segs;
    int32_t sector;
    int32_t _pad;
};

constexpr uint16_t NODE_SUBSECTOR = 0x8000; // set in a child: the rest is a subsector's index

struct MapNode {
    int32_t x, y, dx, dy;                   // fixed; partition line
    int32_t box[2][4];                      // of the right and left child: top, bottom, left, right; fixed
    uint16_t child[2];                      // right (front), left (back)
    uint32_t _pad;
};

struct MapThing {
    int16_t x, y;                           // map units
    int16_t angle;                          // degrees
    int16_t number;                         // as in the map ("editor number")
    int16_t options;
    int16_t type;                           // index into WadBlob::thing_types; -1 for starts and unknown numbers
};

// --- way-finding ------------------------------------------------------------------------------------------------
//
// Nodes of the graph are the level's subsectors (convex, same index), so a position's node is its subsector. An edge
// leads from one to a neighbour through a straight opening where the player fits, or through a teleporter. Things are
// not considered: a barrel may stand in the way.

enum NavKind : int16_t {
    NAV_OPEN,             // passable as the level starts (and one-way drops)
    NAV_MOVES,            // passable once a sector beside it has moved: door, lift, raised or lowered floor
    NAV_TELEPORT          // by crossing `line` from its front side
};

enum NavFlag : int16_t {
    NAV_DROP = 1,         // more than 24 units down: no way back through here
    NAV_DAMAGE = 2,       // the far side hurts
    NAV_DOOR = 4,         // opened by using `line` itself; `key` says what that takes
    NAV_CROSSES = 8,      // crossing `line` triggers its special
    NAV_TRAP = 16,        // beyond it no exit can be reached, whatever one does
    NAV_FROM_ABOVE = 32   // only for who comes off a ledge and crosses the strip below at the ledge's height
};

struct NavEdge {
    int32_t to;                             // subsector
    int32_t line;                           // line passed through, -1 for an opening inside a sector
    int16_t kind, flags;                    // NavKind, NavFlag
    int16_t x, y;                           // where to cross, map units; for a teleporter the middle of its line
    int16_t x1, y1, x2, y2;                 // ends of the opening, the left one first as seen when crossing
    int16_t key;                            // 0 none, 1 blue, 2 yellow, 3 red
    int16_t cost;                           // map units from this subsector's centre to the far one's by way of x, y
};

enum NavNodeFlag : int16_t {
    NAV_NARROW = 1        // the player fits nowhere in it, or only on its edges
};

struct NavNode {
    int16_t x, y;                           // centre of the subsector's polygon, map units
    int16_t flags, _pad;                    // NavNodeFlag
    uint32_t first_edge, n_edges;           // in Level::nav_edges
};

enum NavUse : int16_t { NAV_BY_CROSSING, NAV_BY_USING, NAV_BY_SHOOTING };

// A line whose special moves a sector or ends the level, and where to stand for it.
struct NavTrigger {
    int32_t line;
    int32_t sector;                         // sector it moves; -1 for an exit
    int32_t node;                           // subsector of the place below; -1 if no place was found
    int16_t x, y;                           // place to stand, map units (crossing: a point on the line)
    int16_t use;                            // NavUse
    int16_t key;                            // as in NavEdge
    int16_t exits;                          // 1 normal, 2 secret
    int16_t repeats;                        // may be triggered again
};

// --- a level ----------------------------------------------------------------------------------------------------

struct Level {
    char name[8];
    int32_t episode, map;                   // Doom II: episode 1
    int32_t sky;                            // texture number for a game that starts here
    int32_t node_depth;                     // most nodes on a way from the root to a subsector
    Span<MapVertex> vertices;
    Span<MapSector> sectors;
    Span<MapSide> sides;
    Span<MapLine> lines;
    Span<MapSeg> segs;
    Span<MapSubsector> subsectors;
    Span<MapNode> nodes;                    // the root is the last; none in a level of one subsector
    Span<MapThing> things;
    Span<int32_t> sector_lines;
    Span<uint8_t> reject;                   // bit from * sectors + to, lowest bit first; 1 = cannot see
    int32_t block_x, block_y;               // fixed; origin of the blockmap
    int32_t block_columns, block_rows;      // cells of 128 units
    Span<uint32_t> block_first;             // columns * rows + 1: cell c has block_lines[first[c]] .. [first[c + 1] - 1]
    Span<int32_t> block_lines;              // in the lump's order, with the 0 that stands first in every original list
    Span<NavNode> nav_nodes;
    Span<NavEdge> nav_edges;
    Span<NavTrigger> nav_triggers;          // sorted by sector; exits (sector -1) first
    Span<int32_t> nav_sector_triggers;      // sectors + 1: sector s has triggers [s] .. [s + 1] - 1; exits are before [0]
};

// --- behaviour tables (assets/doom/*.csv), numbered as in DeHackEd; see names.h for names -------------------------

struct State {
    int16_t sprite;       // index into WadBlob::sprites
    int16_t frame;        // letter A = 0
    int16_t bright;
    int16_t action;       // Action
    int32_t tics;         // -1 = for ever
    int32_t next;
};

struct ThingType {
    int32_t number;       // as in maps ("editor number"), -1 for none
    int32_t spawn_state, see_state, pain_state, melee_state, missile_state, death_state, xdeath_state, raise_state;
    int32_t see_sound, attack_sound, pain_sound, death_sound, active_sound;   // 0 = none
    int32_t health, reaction_time, pain_chance;
    int32_t speed;        // map units a step; of a missile fixed units a tic
    int32_t radius, height;                   // fixed
    int32_t mass, damage;
    uint32_t flags;       // MobjFlag
};

struct WeaponType {
    int32_t ammo;         // Ammo
    int32_t up_state, down_state, ready_state, attack_state, flash_state;
    int32_t ammo_per_shot;
};

enum Trigger : uint8_t { TRIGGER_NONE, TRIGGER_CROSS, TRIGGER_SWITCH, TRIGGER_DOOR, TRIGGER_SHOOT, TRIGGER_ALWAYS };

enum SpecialKind : uint8_t {
    KIND_NONE, KIND_DOOR, KIND_FLOOR, KIND_CEILING, KIND_PLAT, KIND_STAIRS, KIND_DONUT, KIND_LIGHT, KIND_TELEPORT,
    KIND_EXIT, KIND_SECRET_EXIT, KIND_STOP_PLAT, KIND_STOP_CEILING, KIND_SCROLL
};

// What the special does, within its kind.
enum SpecialVariant : uint8_t {
    VARIANT_NONE,
    DOOR_NORMAL, DOOR_CLOSE_30_OPEN, DOOR_CLOSE, DOOR_OPEN, DOOR_RAISE_IN_5_MINUTES,
    DOOR_BLAZE_NORMAL, DOOR_BLAZE_OPEN, DOOR_BLAZE_CLOSE,
    FLOOR_LOWER, FLOOR_LOWER_TO_LOWEST, FLOOR_TURBO_LOWER, FLOOR_RAISE, FLOOR_RAISE_TO_NEAREST,
    FLOOR_RAISE_TO_TEXTURE, FLOOR_LOWER_AND_CHANGE, FLOOR_RAISE_24, FLOOR_RAISE_24_AND_CHANGE, FLOOR_RAISE_CRUSH,
    FLOOR_RAISE_TURBO, FLOOR_DONUT_RAISE, FLOOR_RAISE_512,
    CEILING_LOWER_TO_FLOOR, CEILING_RAISE_TO_HIGHEST, CEILING_LOWER_AND_CRUSH, CEILING_CRUSH_AND_RAISE,
    CEILING_FAST_CRUSH, CEILING_SILENT_CRUSH, CEILING_RAISE_AND_FLOOR_LOWER,
    PLAT_PERPETUAL, PLAT_DOWN_WAIT_UP, PLAT_RAISE_AND_CHANGE, PLAT_RAISE_TO_NEAREST_AND_CHANGE, PLAT_BLAZE,
    STAIRS_8, STAIRS_16_TURBO,
    LIGHT_SET, LIGHT_MAX_NEIGHBOUR, LIGHT_STROBE, LIGHT_MIN_NEIGHBOUR
};

enum Monsters : uint8_t { MONSTERS_NO, MONSTERS_TOO, MONSTERS_ONLY };

struct LineSpecial {
    Trigger trigger;
    SpecialKind kind;
    SpecialVariant variant;
    uint8_t repeats;      // 0: the special is cleared once it has worked
    Monsters monsters;
    uint8_t key;          // 0 none, 1 blue, 2 yellow, 3 red
    uint8_t _pad[2];
    int32_t argument;     // plat: units to raise; light: level to set
};
constexpr int LINE_SPECIALS = 142;

enum SectorKind : uint8_t {
    SECTOR_NONE, SECTOR_FLICKER, SECTOR_STROBE, SECTOR_GLOW, SECTOR_FIRE_FLICKER, SECTOR_DOOR_CLOSE_30,
    SECTOR_DOOR_RAISE_5_MINUTES
};

// What a sector special does: a light effect or door from level start, and what happens to a player on its floor.
struct SectorSpecial {
    SectorKind kind;
    uint8_t damage;       // health taken every 32 tics
    uint8_t leaks;        // the radiation suit sometimes fails (when random < 5)
    uint8_t secret;       // counted once
    uint8_t ends_level;   // when health falls to 10 or less; god mode is taken away
    uint8_t synchronous;  // strobes in step with the others
    uint8_t dark_tics;    // of a strobe
    uint8_t _pad;
};
constexpr int SECTOR_SPECIALS = 18;

// --- the blob ---------------------------------------------------------------------------------------------------

enum Rules : uint32_t { RULES_ULTIMATE = 1, RULES_DOOM2 = 2 };

struct WadBlob {
    uint32_t magic, version;
    uint64_t bytes;                         // of the whole blob
    uint8_t wad_sha256[32];
    uint32_t rules;                         // Rules
    uint32_t episodes;                      // 1 with Doom II rules
    int32_t sky_flat;                       // flat that means sky
    int32_t sky_texture[4];                 // SKY1 .. SKY4, 0 where the WAD lacks it
    int32_t _pad;
    Span<Level> levels;                     // in the order they are played; secret ones at the end of their episode
    Span<Texture> textures;                 // in TEXTURE1 + TEXTURE2 order; 0 is never drawn
    Span<uint8_t> flats;                    // 4096 bytes each: flat number n starts at n * 4096
    Span<char[8]> flat_names;
    Span<Patch> patches;
    Span<Sprite> sprites;                   // index = sprite number
    Span<SpriteFrame> sprite_frames;
    Span<int32_t> graphics;                 // Graphic -> patch or -1
    Span<Animation> animations;             // those whose pictures the WAD has
    Span<SwitchPair> switches;              // those the rules allow, in the original order
    Span<uint8_t[768]> palettes;            // 14: red, green, blue of 256 colours
    Span<uint8_t[256]> colormaps;           // 34: light 0 (bright) - 31, 32 invulnerability, 33 black
    Span<Span<uint8_t>> demos;              // lumps DEMO1 .. DEMO4
    Span<State> states;                     // 967
    Span<ThingType> thing_types;            // 137
    Span<WeaponType> weapons;               // 9
    Span<LineSpecial> line_specials;        // LINE_SPECIALS, by number
    Span<SectorSpecial> sector_specials;    // SECTOR_SPECIALS, by number
    Span<int32_t> fine_sine;                // 10240, fixed; entry i is the angle (i + 1/2) / 8192 circle; cosine = + 2048
    Span<int32_t> fine_tangent;             // 4096, fixed; entry i is the angle (i - 2048 + 1/2) / 8192 circle
    Span<uint32_t> tan_to_angle;            // 2049: arctangent of i / 2048 as a binary angle
    Span<uint8_t> random;                   // 256, the one table behind both random streams
};

// First element of an array of the blob.
template <class T>
OFA_FUNCTION const T* at(const WadBlob& blob, Span<T> span) {
    return reinterpret_cast<const T*>(reinterpret_cast<const uint8_t*>(&blob) + span.offset);
}

// Bytes at an offset stored in the blob (columns of patches and textures).
OFA_FUNCTION const uint8_t* bytes_at(const WadBlob& blob, uint32_t offset) {
    return reinterpret_cast<const uint8_t*>(&blob) + offset;
}

}  // namespace doom
