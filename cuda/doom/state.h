// The whole state of one Doom game: one flat struct without pointers.
//
// It can be copied, hashed, saved, rewound and laid side by side. Pools have a fixed capacity, objects are named by
// their index and -1 means none. What never changes during a level (vertexes, segs, nodes, blockmap lists, the
// definition tables) stays in the packed WAD blob (blob.h); arrays here are parallel to the blob's arrays of the level
// in play. Lengths are 16.16 fixed point in map units, angles are binary (2^32 = full circle, 0 = east,
// counterclockwise), times are tics (35 a second).
#pragma once

#include <stdint.h>

namespace doom {

typedef int32_t Fixed;
typedef uint32_t Angle;

constexpr int MAX_PLAYERS = 4;
constexpr int MAX_SECTORS = 2048;
constexpr int MAX_LINES = 16384;
constexpr int MAX_SIDES = 24576;
constexpr int MAX_MOBJS = 4096;
constexpr int MAX_MOVERS = 2048;
constexpr int MAX_BLOCKS = 32768;
constexpr int MAX_BUTTONS = 16;
constexpr int MAX_SCROLLERS = 1024;
constexpr int MAX_BRAIN_TARGETS = 32;
constexpr int MAX_CORPSES = 32;
constexpr int NONE = -1;

enum GameMode : uint8_t { MODE_LEVEL, MODE_INTERMISSION, MODE_FINALE };
// What the next tic begins with.
enum NextAction : uint8_t { NEXT_NONE, NEXT_LOAD_LEVEL, NEXT_COMPLETED, NEXT_WORLD_DONE };
enum PlayerMode : uint8_t { PLAYER_ALIVE, PLAYER_DEAD, PLAYER_REBORN };

enum Ammo : int8_t { AMMO_BULLETS, AMMO_SHELLS, AMMO_CELLS, AMMO_ROCKETS, AMMO_TYPES, AMMO_NONE };
enum Weapon : int8_t {
    WEAPON_FIST, WEAPON_PISTOL, WEAPON_SHOTGUN, WEAPON_CHAINGUN, WEAPON_ROCKETS, WEAPON_PLASMA, WEAPON_BFG,
    WEAPON_CHAINSAW, WEAPON_SUPER_SHOTGUN, WEAPON_TYPES, WEAPON_NO_CHANGE
};
enum Power : int8_t { POWER_INVULNERABLE, POWER_STRENGTH, POWER_INVISIBLE, POWER_SUIT, POWER_MAP, POWER_LIGHT, POWER_TYPES };
enum Card : int8_t { CARD_BLUE, CARD_YELLOW, CARD_RED, SKULL_BLUE, SKULL_YELLOW, SKULL_RED, CARD_TYPES };

// Flag bits of a map object ("Bits" of DeHackEd).
enum MobjFlag : uint32_t {
    MF_SPECIAL = 0x1, MF_SOLID = 0x2, MF_SHOOTABLE = 0x4, MF_NOSECTOR = 0x8, MF_NOBLOCKMAP = 0x10, MF_AMBUSH = 0x20,
    MF_JUSTHIT = 0x40, MF_JUSTATTACKED = 0x80, MF_SPAWNCEILING = 0x100, MF_NOGRAVITY = 0x200, MF_DROPOFF = 0x400,
    MF_PICKUP = 0x800, MF_NOCLIP = 0x1000, MF_SLIDE = 0x2000, MF_FLOAT = 0x4000, MF_TELEPORT = 0x8000,
    MF_MISSILE = 0x10000, MF_DROPPED = 0x20000, MF_SHADOW = 0x40000, MF_NOBLOOD = 0x80000, MF_CORPSE = 0x100000,
    MF_INFLOAT = 0x200000, MF_COUNTKILL = 0x400000, MF_COUNTITEM = 0x800000, MF_SKULLFLY = 0x1000000,
    MF_NOTDMATCH = 0x2000000, MF_TRANSLATION = 0xC000000, MF_TRANSLATION_SHIFT = 26
};

// A thing as the map has it (positions in whole map units), kept for respawning.
struct SpawnPoint {
    int16_t x, y, angle, type, options;
};

// A map object. Its thinker node has the same index.
struct Mobj {
    Fixed x, y, z;
    Angle angle;
    int16_t sprite;             // number of the sprite name
    uint16_t frame;             // bit 15: drawn at full brightness
    int16_t type, state;        // DeHackEd "Thing" number - 1, "Frame" number
    int32_t tics;               // left in this state, -1 for ever
    uint32_t flags;             // MobjFlag
    int32_t health;
    Fixed momx, momy, momz;
    Fixed radius, height;
    Fixed floorz, ceilingz;     // of the lines it touches, not only of its sector
    int32_t sector, subsector;
    int32_t sector_next, sector_prev;  // list of a sector's objects, newest first
    int32_t block_next, block_prev;    // list of a blockmap cell's objects, newest first
    int32_t movedir, movecount;
    int32_t reactiontime, threshold;
    int32_t target, tracer;     // objects
    int32_t lastlook;           // player looked for last
    int32_t player;             // index of the player it is, or -1
    SpawnPoint spawn;
};

enum ThinkerKind : uint8_t {
    THINKER_FREE, THINKER_REMOVED, THINKER_MOBJ, THINKER_DOOR, THINKER_FLOOR, THINKER_CEILING, THINKER_PLAT,
    THINKER_FLICKER, THINKER_FLASH, THINKER_STROBE, THINKER_GLOW
};

// A node of the one list that fixes the order of everything that moves. Node i < MAX_MOBJS belongs to mobjs[i],
// node MAX_MOBJS + j to movers[j], node THINKER_HEAD is the list's head.
struct Thinker {
    int32_t next, prev;
    ThinkerKind kind;
};
constexpr int MAX_THINKERS = MAX_MOBJS + MAX_MOVERS;
constexpr int THINKER_HEAD = MAX_THINKERS;

// A moving or flashing sector: door, floor, ceiling, plat or light, as its thinker's kind says.
struct Mover {
    int32_t type;               // enum of the kind
    int32_t sector;
    Fixed speed, low, high;     // lights: low, high are light levels
    int32_t direction, old_direction;
    int32_t wait, count;        // tics
    int32_t dark_time, bright_time;
    int32_t crush;
    int32_t tag;
    int32_t new_special;
    int32_t texture;            // flat given to the floor at the end
    uint8_t stasis;             // stopped until activated again; stays in the list
};

struct Sector {
    Fixed floor_height, ceiling_height;
    int16_t floor_flat, ceiling_flat;  // lump index minus (index of F_START + 1)
    int16_t light, special, tag;
    int16_t sound_traversed;    // 0 not, 1 or 2: number of sound-blocking lines crossed + 1
    int32_t sound_target;       // object that made the last noise heard here
    int32_t objects;            // head of the list of objects
    int32_t mover;              // index in movers of what moves floor or ceiling
    uint32_t valid;             // Game::valid_count of the last visit
    uint8_t seen;               // the scripted player has been here
};

struct Line {
    int16_t flags;              // as in the map, plus LINE_MAPPED
    int16_t special, tag;
    uint32_t valid;
};
enum LineFlag : int16_t {
    LINE_BLOCKING = 1, LINE_BLOCK_MONSTERS = 2, LINE_TWO_SIDED = 4, LINE_PEG_TOP = 8, LINE_PEG_BOTTOM = 16,
    LINE_SECRET = 32, LINE_SOUND_BLOCK = 64, LINE_DONT_DRAW = 128, LINE_MAPPED = 256
};

struct Side {
    Fixed x_offset, y_offset;
    int16_t top, bottom, middle;  // texture numbers in TEXTURE1 + TEXTURE2 order, 0 = none
};

enum ButtonPlace : int8_t { BUTTON_TOP, BUTTON_MIDDLE, BUTTON_BOTTOM };

// A switch that flips back after a second.
struct Button {
    int32_t line;
    ButtonPlace place;
    int16_t texture;
    int32_t timer;              // 0: free
};

// One player's wish for one tic: the four bytes of a demo.
struct TicCommand {
    int8_t forward, side;       // 25 / 24 walk, 50 / 40 run
    int16_t turn;               // bits 31-16 of an angle; the low byte is 0 in a demo
    uint8_t buttons;            // bit 0 fire, 1 use, 2 change weapon (number in bits 3-5), 7 special
};
enum CommandButton : uint8_t { BUTTON_FIRE = 1, BUTTON_USE = 2, BUTTON_CHANGE = 4, BUTTON_WEAPON_SHIFT = 3, BUTTON_SPECIAL = 128 };

// The weapon in the hand ([0]) and its flash ([1]), positions on the 320x200 screen.
struct WeaponSprite {
    int32_t state;              // -1: not shown
    int32_t tics;
    Fixed sx, sy;
    int16_t sprite;
    uint16_t frame;             // as in Mobj
};

struct Player {
    int32_t mobj;
    PlayerMode mode;
    TicCommand command;
    Fixed view_z, view_height, delta_view_height, bob;
    int32_t health, armor, armor_type;
    int32_t powers[POWER_TYPES];  // tics left; STRENGTH counts up
    uint8_t cards[CARD_TYPES];
    uint8_t backpack;
    int8_t ready_weapon, pending_weapon;
    uint8_t weapon_owned[WEAPON_TYPES];
    int16_t ammo[AMMO_TYPES], max_ammo[AMMO_TYPES];
    uint8_t attack_down, use_down;
    uint8_t god, noclip;
    int32_t refire;
    int16_t kill_count, item_count, secret_count;
    int16_t frags[MAX_PLAYERS];   // of the level: others killed, and itself by the level
    int16_t message;            // just received; number in messages.h, 0 none
    int16_t shown_message;      // at the top of the screen
    int32_t message_tics;       // it stays there, 0 none
    int32_t damage_count, bonus_count;
    int32_t attacker;           // object
    int32_t extra_light;
    int32_t fixed_colormap;     // 0 none, 1 light amplification, 32 invulnerability
    WeaponSprite sprites[2];
    uint8_t did_secret;
};

// What the status bar remembers between tics. It consumes one cosmetic random number a tic.
struct StatusBar {
    int32_t face, face_count, priority;
    int32_t rampage_tics;       // of fire held down until the face shows it, -1 when up
    int32_t old_health, last_calc_pain, last_pain_health;
    uint8_t old_weapons[WEAPON_TYPES];
    uint8_t first_weapons[WEAPON_TYPES];  // owned when the bar was last drawn afresh: level start, rebirth
    int32_t random;
};

// Scores shown between two levels, counting up; fire or use skips. What is not shown yet is -1.
enum IntermissionStage : uint8_t { STAGE_COUNTS, STAGE_NEXT_PLACE, STAGE_LEAVING };
enum Score : int8_t { SCORE_KILLS, SCORE_ITEMS, SCORE_SECRETS, SCORE_FRAGS, SCORES };  // percentages, frags a number
struct Intermission {
    IntermissionStage stage;
    uint8_t step;               // of STAGE_COUNTS: odd pauses, 2 kills, 4 items, 6 secrets, 8 time or frags, 10 done
    uint8_t hurry;              // a player asked to skip
    uint8_t secret_exit;
    uint8_t frags_count;        // in a game of several, who has killed another: then frags are shown
    int32_t tics;               // since its start
    int32_t left;               // tics of the stage or pause
    int32_t episode, last_map, next_map;
    int32_t scores[MAX_PLAYERS][SCORES], seconds, par_seconds;  // final figures; alone, only the viewed player counts
    int32_t shown[MAX_PLAYERS][SCORES], shown_seconds, shown_par;
    int32_t finale_tics;
    int32_t animation_tics;     // tics when the map's animations began
    uint8_t animation_random;   // cosmetic stream's index then
};

// Working variables of movement and shooting. Some keep a value from one call to the next, and that is observable.
struct Clip {
    int32_t thing;
    uint32_t flags;
    Fixed x, y;
    Fixed box[4];               // top, bottom, left, right
    Fixed floor_z, ceiling_z, dropoff_z;
    uint8_t float_ok;
    int32_t ceiling_line;
    int32_t special_lines[32];
    int32_t special_count;
    // opening of the line looked at last
    Fixed open_top, open_bottom, open_range, low_floor;
    uint8_t on_ground;          // the player that moved last
    // shooting
    int32_t line_target, shooter, damage;
    Fixed shoot_z, slope, range, top_slope, bottom_slope;
    // path
    Fixed trace_x, trace_y, trace_dx, trace_dy;
    // sliding
    Fixed best_slide, second_slide;
    int32_t best_slide_line, second_slide_line;
    Fixed slide_momx, slide_momy;
    uint8_t no_fit;             // something does not fit under the ceiling that moves
};

// Something a walk along a line met: a line or an object, at a fraction of the way.
struct Intercept {
    Fixed fraction;
    int32_t line, thing;        // the other is -1
};
constexpr int MAX_INTERCEPTS = 192;
constexpr int MAX_SECTOR_QUEUE = 2 * MAX_SECTORS;

enum Behaviour : uint8_t {
    BEHAVIOUR_EXPLORE, BEHAVIOUR_HUNT, BEHAVIOUR_SPEEDRUN, BEHAVIOUR_PACIFIST, BEHAVIOUR_BERSERK, BEHAVIOUR_CAMP,
    BEHAVIOUR_MANUAL, BEHAVIOURS
};

// What a scripted player is after.
enum GoalKind : uint8_t { GOAL_NONE, GOAL_SECTOR, GOAL_ITEM, GOAL_TRIGGER, GOAL_PLACE, GOAL_ENEMY, GOAL_POST };

// Heights a sector can come to, by what moves it now and by its triggers.
struct SectorReach {
    Fixed lowest, highest;      // floor
    Fixed ceiling;              // at most
    int32_t search;             // Script::search_number it was worked out in
};

// What a scripted player remembers. All but the first group starts afresh with each level.
constexpr int MAX_PATH = 192, MAX_NAV_NODES = 16384, MAX_NAV_EDGES = 65536, MAX_AVOIDED_ITEMS = 64, MOST_USES = 6;
constexpr int MAX_BARRED = 2048, MAX_KEYS = 32;
struct BarredEdge {
    int32_t from, edge;
};
struct Script {
    uint8_t behaviour;
    uint32_t random;            // its own stream, so that it disturbs nobody
    TicCommand manual;

    int32_t level, level_tics;  // of the last thought: a step back means another life
    int32_t sectors_seen;
    GoalKind goal_kind, last_kind;
    int32_t goal;               // sector, object, trigger or node
    int32_t goal_node, goal_x, goal_y, goal_tics, goal_limit;  // place in map units
    int32_t goal_side;          // of a line to cross: the side it was begun from
    int32_t path[MAX_PATH];     // edges of the navigation graph, the next one last
    int32_t path_length, goal_failures, goal_tries, off_path_tics, wait_tics, rest_tics, use_tics;
    int32_t aim;                // edge of the path walked to
    int32_t path_checked;       // edges of the path below this one have not been walked in thought
    int32_t remedy_edge, remedy_line;  // barred edge the goal is to open, line used last
    int32_t plan_tics;
    Fixed sample_x, sample_y;   // where it was at the last check for being stuck
    int32_t sample_tics, moving_tics;
    int32_t dodge_tics, wander_tics;
    Angle dodge_angle;
    // Progress: the place it does not get away from, and the time since anything new happened.
    Fixed anchor_x, anchor_y;
    int32_t stall_tics, pinned_tics, anchors, breakouts;
    int32_t score, idle_tics, stay_tics, random_places;
    uint8_t waiting;            // for a door or a lift, or fighting: standing still is meant
    int32_t enemy, enemy_tics, enemy_health;
    int32_t spared, peace_tics; // whom it leaves alone, for how long
    int32_t evade_tics, strafe_tics;
    int32_t watch_tics, posts, advances;  // at the post it keeps; posts left, ways taken since to others
    Angle post_angle;
    int32_t health;             // at the last thought
    int32_t threat;             // danger of the enemies in sight
    Fixed brawl_x, brawl_y;     // the place it has been about for so long
    int32_t brawl_tics;
    Angle evade_angle;
    uint8_t strafes_right;
    Angle heading;              // of the last steps
    int32_t avoided_items[MAX_AVOIDED_ITEMS], n_avoided_items;
    uint8_t despair;            // there was nothing left to do: dubious passages count as open
    uint8_t stubborn;           // and what failed often is tried all the same
    uint8_t sector_failures[MAX_SECTORS];
    uint8_t edge_failures[MAX_NAV_EDGES];
    uint8_t line_uses[MAX_LINES];
    // The search for ways, the running or the last one.
    uint8_t searching, search_wanted;
    int32_t search_number;
    uint32_t random_ties;
    int32_t layer, n_barred;
    BarredEdge barred[MAX_BARRED];  // met and not passed
    int32_t keys[MAX_KEYS], n_keys;
    int32_t bosses[2], exit_boss;  // living ones whose death moves tag 666, tag 667, ends the level
    uint8_t node_danger[MAX_NAV_NODES];
    SectorReach reach[MAX_SECTORS];
    int32_t distance[MAX_NAV_NODES], heap[MAX_NAV_NODES], heap_place[MAX_NAV_NODES], heap_size;
    int32_t came_from[MAX_NAV_NODES], came_by[MAX_NAV_NODES];  // node, edge
};

struct Game {
    // --- the game ---
    uint64_t tic;               // since the game began
    uint32_t seed;
    int32_t level;              // index of the level in the blob
    uint32_t loads;             // levels set up since the launch
    uint8_t episode, map, skill;      // skill 0-4
    uint8_t commercial;         // Doom II rules and maps
    uint8_t cooperative, deathmatch, no_monsters, respawn_monsters, fast_monsters;
    uint8_t present[MAX_PLAYERS];
    uint8_t viewed;             // player whose eyes draw the picture
    GameMode mode;
    uint8_t paused;
    uint8_t action;             // NextAction: what the next tic begins with
    uint8_t secret_exit;
    uint8_t sky;                // number of the sky texture, 1-4
    uint8_t simulation_random, cosmetic_random;  // indices of the two streams
    uint8_t stays_at_end;       // no new game follows the last level: a demo, whose original stops there
    uint8_t sounds;             // audible sounds draw cosmetic numbers, as with a sound card (sim/sound.h)
    uint8_t exhausted;          // a pool was full and something was left out
    int32_t level_tics;         // leveltime
    int32_t total_kills, total_items, total_secrets;
    Player players[MAX_PLAYERS];
    SpawnPoint starts[MAX_PLAYERS];
    StatusBar status_bar;
    Intermission intermission;
    int32_t fuzz_position;      // of the renderer, runs on from frame to frame

    // --- the level ---
    int32_t n_sectors, n_lines, n_sides, n_blocks, n_scrollers;
    uint32_t valid_count;       // number of the current search; marks lines and sectors as visited
    int32_t mobj_hint, mover_hint;    // where the search for a free slot begins
    int32_t corpse_count, corpses[MAX_CORPSES];
    int32_t brain_target_count, brain_target_next, brain_targets[MAX_BRAIN_TARGETS];
    uint8_t brain_easy;
    Clip clip;
    int32_t n_intercepts;
    Intercept intercepts[MAX_INTERCEPTS];
    int32_t sector_queue[MAX_SECTOR_QUEUE];  // of searches from sector to sector
    Script script;
    Button buttons[MAX_BUTTONS];
    int32_t scrollers[MAX_SCROLLERS];  // lines whose front side scrolls
    int32_t block_objects[MAX_BLOCKS]; // head of the object list of each blockmap cell
    Sector sectors[MAX_SECTORS];
    Line lines[MAX_LINES];
    Side sides[MAX_SIDES];
    Thinker thinkers[MAX_THINKERS + 1];
    Mobj mobjs[MAX_MOBJS];
    Mover movers[MAX_MOVERS];
};

}  // namespace doom
