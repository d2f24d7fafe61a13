// Working memory of the renderer: what one frame collects before pixels are drawn.
//
// One RenderScratch serves one game at a time. It must be zero before its first frame; the projection tables in it are
// kept from frame to frame, everything else is rebuilt. None of it is game state: a frame is a function of the Game,
// the WAD and the pixels of the frame before (which show where nothing is drawn).
#pragma once

#include "math.h"

namespace doom {
namespace render {

constexpr int SCREEN_WIDTH = 320, SCREEN_HEIGHT = 200;
constexpr int VIEW_WIDTH = 320, VIEW_HEIGHT = 168;
constexpr int BAR_Y = VIEW_HEIGHT, BAR_HEIGHT = SCREEN_HEIGHT - VIEW_HEIGHT;
constexpr int CENTER_X = VIEW_WIDTH / 2, CENTER_Y = VIEW_HEIGHT / 2;

constexpr int FINE_HALF = 4096;             // fine angles of half a circle
constexpr int LIGHT_LEVELS = 16;            // a sector's 256 levels in steps of 16
constexpr int PLANE_LIGHTS = 128;           // distance steps of floors and ceilings
constexpr int WALL_LIGHTS = 48;             // scale steps of walls and sprites
constexpr int COLORMAPS = 32;

// Limits of the original: what is above them is left out of the picture.
constexpr int MAX_DRAW_SEGS = 256;
constexpr int MAX_PLANES = 128;
constexpr int MAX_SPRITES = 128;
// Limits of ours. Columns and spans beyond the lists are drawn at once by the leading thread.
constexpr int MAX_OPENINGS = 128 * VIEW_WIDTH;
constexpr int MAX_SOLID_RANGES = VIEW_WIDTH / 2 + 4;
constexpr int MAX_NODE_DEPTH = 256;
constexpr int MAX_COLUMNS = 6144;
constexpr int MAX_SPANS = 8192;
constexpr int MAX_FUZZY = MAX_SPRITES + 2;  // sprites and the two weapon sprites
constexpr int MAX_PATCHES = 128;
constexpr int MAX_SHOWN = 4096;             // textures, flats

constexpr int PLANE_CHAINS = 128;           // planes by hash
constexpr int SPARE_SPANS = 1;              // that planes.h may write behind a list's end

constexpr int NO_FIXED_MAP = -1;
constexpr int FUZZ_MAP = -1;                // in place of a colormap number
constexpr int16_t NOT_MASKED = 0x7fff;      // masked column that is absent or drawn already
constexpr uint8_t UNMARKED = 0xff;          // top of a plane's column

// Projection and light tables, and a fact about the bar: they depend on the size of the view and the WAD alone.
struct ViewTables {
    uint32_t ready;
    Angle clip_angle;                       // half the field of view
    uint16_t x_of_angle[FINE_HALF];         // left-to-right angle (0 = 90 degrees left) to screen column
    Angle angle_of_x[VIEW_WIDTH + 1];       // of a column's left edge, relative to the view
    Fixed row_slope[VIEW_HEIGHT];           // distance of a plane at height 1 that shows in this row
    Fixed column_stretch[VIEW_WIDTH];       // 1 / cosine of the column's angle
    uint8_t plane_map[LIGHT_LEVELS][PLANE_LIGHTS];
    uint8_t wall_map[LIGHT_LEVELS][WALL_LIGHTS];
    uint8_t bar_is_solid;                   // its background covers the bar: nothing of a frame before shows through
};

// The eye of this frame and the level it looks at.
struct View {
    Fixed x, y, z;
    Angle angle;
    Fixed sine, cosine;
    Fixed plane_step_x, plane_step_y;       // texture step per column on a plane at distance 1
    int32_t extra_light;
    int32_t fixed_map;                      // colormap of everything, or NO_FIXED_MAP
    int32_t sky;                            // texture
    const MapVertex* vertices;
    const MapSeg* segs;
    const MapSubsector* subsectors;
    const MapNode* nodes;
    const Texture* textures;
    const uint8_t* colormaps;
};

struct SolidRange {
    int32_t first, last;
};

enum Silhouette : uint8_t { SILHOUETTE_BOTTOM = 1, SILHOUETTE_TOP = 2, SILHOUETTE_BOTH = 3 };

// A piece of wall that may hide sprites or has a masked texture. Clips and masked columns are arrays over the columns
// first..last in `openings`: column x is openings[offset + x].
struct DrawSeg {
    int32_t seg;
    int32_t first, last;
    Fixed scale_first, scale_last, scale_step;
    Fixed bottom_height, top_height;        // do not clip sprites above (below) this
    int32_t top_clip, bottom_clip;          // NONE where the silhouette lacks the edge
    int32_t masked_columns;                 // NONE without a masked texture
    uint8_t silhouette;
};
constexpr int OPENING_VIEW_HEIGHT = 0;      // columns that hold VIEW_HEIGHT
constexpr int OPENING_MINUS_ONE = VIEW_WIDTH;
constexpr int OPENING_FIRST_FREE = 2 * VIEW_WIDTH;

// Floor or ceiling areas of one height, flat and light. top[x + 1], bottom[x + 1] belong to column x, so that the
// columns beside the screen exist.
struct Plane {
    Fixed height;
    int32_t flat, light;
    int32_t first, last;
    int32_t next;                           // of those that find_plane made with the same hash, or NONE
    uint8_t top[VIEW_WIDTH + 2], bottom[VIEW_WIDTH + 2];
};

// A projected sprite.
struct VisSprite {
    int32_t first, last;
    Fixed x, y, z, top_z;
    Fixed start_column, column_step;        // patch columns
    Fixed scale, texture_top;
    int32_t patch;
    int32_t map;                            // colormap or FUZZ_MAP
    int32_t translation;                    // 0 none, 1-3
    int32_t fuzzy;                          // row of fuzz_start, or NONE
};

// One vertical run of wall pixels: row y shows source[(fraction >> 16) & 127], and fraction grows by step.
struct Column {
    uint32_t source;                        // offset in the blob
    int32_t fraction, step;
    int16_t x;
    uint8_t first, last;
    uint8_t map;
};

// One horizontal run of a plane.
struct PlaneSpan {
    int16_t first, last;
    uint8_t y, plane;
};

// A picture on the screen; only what lies in the rectangle shows.
struct PlacedPatch {
    int16_t patch, x, y;
    int16_t left, top, right, bottom;       // last column and row included
};

struct RenderScratch {
    ViewTables tables;
    int16_t texture_shown[MAX_SHOWN], flat_shown[MAX_SHOWN];   // animation: number to picture
    View view;

    int32_t n_solid, n_draw_segs, n_planes, n_sprites, n_columns, n_spans, n_fuzzy, n_openings, n_patches;
    int32_t column_limit;                   // MAX_COLUMNS, or 0 where one thread draws: then a list gains nothing
    int32_t floor_plane, ceiling_plane;     // of the subsector being drawn, or NONE
    int32_t n_tangents_beyond;              // wall columns that asked for a tangent beyond the table
    uint8_t planes_overlap;                 // two planes share a pixel: their order counts
    int16_t ceiling_clip[VIEW_WIDTH], floor_clip[VIEW_WIDTH];  // open rows are between, both excluded
    SolidRange solid[MAX_SOLID_RANGES];
    int32_t node_stack[MAX_NODE_DEPTH];
    uint32_t sector_seen[MAX_SECTORS / 32];
    DrawSeg draw_segs[MAX_DRAW_SEGS];
    Plane planes[MAX_PLANES + 1];           // the last one takes what is above the limit and is not drawn
    int16_t plane_chains[PLANE_CHAINS];
    int32_t first_span[MAX_PLANES + 1];
    VisSprite sprites[MAX_SPRITES];
    VisSprite weapon_sprites[2];
    int16_t order[MAX_SPRITES];             // sprites, farthest first
    int16_t openings[MAX_OPENINGS];
    int16_t sprite_top[VIEW_WIDTH], sprite_bottom[VIEW_WIDTH];
    Column columns[MAX_COLUMNS];
    PlaneSpan spans[MAX_SPANS];
    // of the one area and span that a thread works on that draws planes alone
    int16_t edges[VIEW_WIDTH + 2];          // columns where rows begin or end
    int16_t starts[SPARE_SPANS + UNMARKED + 1 + SPARE_SPANS];  // columns where the spans of rows began
    uint32_t places[VIEW_WIDTH];            // in the flat
    uint8_t fuzz_start[MAX_FUZZY][VIEW_WIDTH];  // first the pixels of a column, then its start in the fuzz table
    PlacedPatch patches[MAX_PATCHES];
    // The bar drawn last: the same pictures at the same places make the same pixels.
    int32_t n_bar_patches;
    uint8_t bar_is_drawn;                   // `bar` is what this frame's pictures make
    PlacedPatch bar_patches[MAX_PATCHES];
    uint8_t bar[BAR_HEIGHT * SCREEN_WIDTH];
};

}  // namespace render

using render::RenderScratch;

}  // namespace doom
