// The screens between levels: the scores of the last one, and the way to the next on the episode's map.
#pragma once

#include "patches.h"

namespace doom {
namespace render {

constexpr int MAP_LEVELS = 9, MAP_EPISODES = 3;
constexpr int MAX_DIGITS = 5;
constexpr int TITLE_Y = 2, SCORES_X = 50, SCORES_Y = 50, TIME_X = 16, TIME_Y = 168;
constexpr int PLAYER_COLUMN = 64, PLAYER_ROW = 33, PLAYER_SCORE_Y = 10, MINUS_WIDTH = 8;
constexpr int MARKING_FACE = GRAPHIC_STFACE + 1;
constexpr int LONGEST_SECONDS = 61 * 59;
constexpr int POINTER_PERIOD = 32, POINTER_TICS = 20;

struct ScreenPoint {
    int16_t x, y;
};

// Where the levels lie on the maps of the three episodes.
OFA_TABLE ScreenPoint LEVEL_PLACES[MAP_EPISODES][MAP_LEVELS] = {
    {{185, 164}, {148, 143}, {69, 122}, {209, 102}, {116, 89}, {166, 55}, {71, 56}, {135, 29}, {71, 24}},
    {{254, 25}, {97, 50}, {188, 64}, {128, 78}, {214, 92}, {133, 130}, {208, 136}, {148, 140}, {235, 158}},
    {{156, 168}, {48, 154}, {174, 95}, {265, 75}, {130, 48}, {279, 23}, {198, 48}, {140, 25}, {281, 136}}};

// A moving part of a map. Those of a level (next >= 0) show on the way to it and stop at their last frame.
struct MapAnimation {
    int16_t x, y;
    int8_t frames, period;                  // tics
    int8_t next;                            // level from 0, -1 for always
    int8_t picture;                         // row of GRAPHIC_WIA
};
constexpr int MAP_ANIMATIONS = 10;
OFA_TABLE MapAnimation ANIMATIONS[MAP_EPISODES][MAP_ANIMATIONS] = {
    {{224, 104, 3, 11, -1, 0}, {184, 160, 3, 11, -1, 1}, {112, 136, 3, 11, -1, 2}, {72, 112, 3, 11, -1, 3},
     {88, 96, 3, 11, -1, 4}, {64, 48, 3, 11, -1, 5}, {192, 40, 3, 11, -1, 6}, {136, 16, 3, 11, -1, 7},
     {80, 16, 3, 11, -1, 8}, {64, 24, 3, 11, -1, 9}},
    {{128, 136, 1, 11, 1, 0}, {128, 136, 1, 11, 2, 1}, {128, 136, 1, 11, 3, 2}, {128, 136, 1, 11, 4, 3},
     {128, 136, 1, 11, 5, 4}, {128, 136, 1, 11, 6, 5}, {128, 136, 1, 11, 7, 6}, {192, 144, 3, 11, 8, 7},
     {128, 136, 1, 11, 8, 4}, {}},
    {{104, 168, 3, 11, -1, 0}, {40, 136, 3, 11, -1, 1}, {160, 96, 3, 11, -1, 2}, {104, 80, 3, 11, -1, 3},
     {120, 32, 3, 11, -1, 4}, {40, 0, 3, 8, -1, 5}, {}, {}, {}, {}}};
constexpr int ONLY_ON_THE_WAY = 7;          // this one of the second episode waits for the scores to end

OFA_INLINE bool has_map(const Game& game) { return !game.commercial && game.intermission.episode <= MAP_EPISODES; }

// Frame of an animation now, -1 before it begins. Those that always run begin at random tics.
OFA_INLINE int animation_frame(const Game& game, const WadBlob& wad, int number) {
    const Intermission& in = game.intermission;
    const MapAnimation& a = ANIMATIONS[in.episode - 1][number];
    int start = in.animation_tics + 1;
    if (a.next < 0) {
        const uint8_t index = uint8_t(in.animation_random + 1 + number);
        start += at(wad, wad.random)[index] % a.period;
    } else if (in.next_map - 1 != a.next || (number == ONLY_ON_THE_WAY && in.stage == STAGE_COUNTS)) {
        return -1;
    }
    if (in.tics < start) return -1;
    const int frame = (in.tics - start) / a.period;
    return a.next < 0 ? frame % a.frames : min(frame, a.frames - 1);
}

OFA_FUNCTION void place_map(RenderScratch& s, const Game& game, const WadBlob& wad) {
    if (!has_map(game)) {
        place(s, wad, GRAPHIC_INTERPIC, 0, 0);
        return;
    }
    const int episode = game.intermission.episode - 1;
    place(s, wad, GRAPHIC_WIMAP + episode, 0, 0);
    for (int i = 0; i < MAP_ANIMATIONS && ANIMATIONS[episode][i].frames; ++i) {
        const MapAnimation& a = ANIMATIONS[episode][i];
        const int frame = animation_frame(game, wad, i);
        if (frame >= 0) place(s, wad, GRAPHIC_WIA + (episode * MAP_ANIMATIONS + a.picture) * 3 + frame, a.x, a.y);
    }
}

OFA_INLINE int level_name(const Game& game, int map) {
    return GRAPHIC_WILV + (game.commercial ? map - 1 : (game.intermission.episode - 1) * MAP_LEVELS + map - 1);
}

// A line of the title, centred; returns where the next one goes. Lines are spaced by the height of the level's name.
OFA_FUNCTION int place_title(RenderScratch& s, const WadBlob& wad, int graphic, int name, int y) {
    place(s, wad, graphic, (SCREEN_WIDTH - graphic_width(wad, graphic)) / 2, y);
    const Patch* patch = graphic_patch(wad, name);
    return y + (patch ? 5 * patch->height / 4 : 0);
}

OFA_FUNCTION void place_percent(RenderScratch& s, const WadBlob& wad, int x, int y, int value) {
    if (value < 0) return;
    place(s, wad, GRAPHIC_WIPCNT, x, y);
    place_number(s, wad, GRAPHIC_WINUM, x, y, value, MAX_DIGITS);
}

// Minutes and seconds that end at x, hours too where there are some; too long a time has a word of its own.
OFA_FUNCTION void place_time(RenderScratch& s, const WadBlob& wad, int x, int y, int seconds) {
    if (seconds < 0) return;
    if (seconds > LONGEST_SECONDS) {
        place(s, wad, GRAPHIC_WISUCKS, x - graphic_width(wad, GRAPHIC_WISUCKS), y);
        return;
    }
    const int digit = graphic_width(wad, GRAPHIC_WINUM);
    int unit = 1;
    do {
        const int value = seconds / unit % 60;
        place(s, wad, GRAPHIC_WINUM + value % 10, x - digit, y);
        place(s, wad, GRAPHIC_WINUM + value / 10, x - 2 * digit, y);
        x -= 2 * digit + graphic_width(wad, GRAPHIC_WICOLON);
        unit *= 60;
        if (unit == 60 || seconds / unit) place(s, wad, GRAPHIC_WICOLON, x, y);
    } while (seconds / unit);
}

OFA_FUNCTION void place_scores(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Intermission& in = game.intermission;
    const int name = level_name(game, in.last_map);
    place_title(s, wad, GRAPHIC_WIF, name, place_title(s, wad, name, name, TITLE_Y));
    const Patch* digit = graphic_patch(wad, GRAPHIC_WINUM);
    const int line = digit ? 3 * digit->height / 2 : 0, right = SCREEN_WIDTH - SCORES_X;
    place(s, wad, GRAPHIC_WIOSTK, SCORES_X, SCORES_Y);
    const int32_t* shown = in.shown[game.viewed];
    place_percent(s, wad, right, SCORES_Y, shown[SCORE_KILLS]);
    place(s, wad, GRAPHIC_WIOSTI, SCORES_X, SCORES_Y + line);
    place_percent(s, wad, right, SCORES_Y + line, shown[SCORE_ITEMS]);
    place(s, wad, GRAPHIC_WISCRT2, SCORES_X, SCORES_Y + 2 * line);
    place_percent(s, wad, right, SCORES_Y + 2 * line, shown[SCORE_SECRETS]);
    place(s, wad, GRAPHIC_WITIME, TIME_X, TIME_Y);
    place_time(s, wad, SCREEN_WIDTH / 2 - TIME_X, TIME_Y, in.shown_seconds);
    if (in.episode > MAP_EPISODES) return;  // the fourth episode has no par times
    place(s, wad, GRAPHIC_WIPAR, SCREEN_WIDTH / 2 + TIME_X, TIME_Y);
    place_time(s, wad, SCREEN_WIDTH - TIME_X, TIME_Y, in.shown_par);
}

// A number that may be negative and ends at x.
OFA_FUNCTION void place_frags(RenderScratch& s, const WadBlob& wad, int x, int y, int value) {
    const int left = place_number(s, wad, GRAPHIC_WINUM, x, y, value < 0 ? -value : value, MAX_DIGITS);
    if (value < 0) place(s, wad, GRAPHIC_WIMINUS, left - MINUS_WIDTH, y);
}

// Scores of several players: a row for each, the viewed one marked by a face.
OFA_FUNCTION void place_everyones_scores(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Intermission& in = game.intermission;
    const int name = level_name(game, in.last_map);
    place_title(s, wad, GRAPHIC_WIF, name, place_title(s, wad, name, name, TITLE_Y));
    OFA_TABLE int headings[SCORES] = {GRAPHIC_WIOSTK, GRAPHIC_WIOSTI, GRAPHIC_WIOSTS, GRAPHIC_WIFRGS};
    const int columns = in.frags_count ? SCORES : SCORE_FRAGS;
    const int left = 32 + graphic_width(wad, MARKING_FACE) / 2 + (in.frags_count ? 0 : 32);
    for (int column = 0; column < columns; ++column) {
        const int right = left + (column + 1) * PLAYER_COLUMN;
        place(s, wad, headings[column], right - graphic_width(wad, headings[column]), SCORES_Y);
    }
    const Patch* heading = graphic_patch(wad, GRAPHIC_WIOSTK);
    int y = SCORES_Y + (heading ? heading->height : 0);
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!game.present[i]) continue;
        const int badge = GRAPHIC_STPB + i, badge_x = left - graphic_width(wad, badge);
        place(s, wad, badge, badge_x, y);
        if (i == game.viewed) place(s, wad, MARKING_FACE, badge_x, y);
        int right = left;
        for (int score = 0; score < SCORE_FRAGS; ++score) {
            right += PLAYER_COLUMN;
            place_percent(s, wad, right - graphic_width(wad, GRAPHIC_WIPCNT), y + PLAYER_SCORE_Y, in.shown[i][score]);
        }
        if (in.frags_count)
            place_frags(s, wad, right + PLAYER_COLUMN, y + PLAYER_SCORE_Y, in.shown[i][SCORE_FRAGS]);
        y += PLAYER_ROW;
    }
}

// A sign at a level's place, the first of `pictures` that fits on the screen there.
OFA_FUNCTION void place_sign(RenderScratch& s, const WadBlob& wad, int graphic, int pictures, ScreenPoint at_point) {
    for (int i = 0; i < pictures; ++i) {
        const Patch* patch = graphic_patch(wad, graphic + i);
        if (!patch) continue;
        const int left = at_point.x - patch->left, top = at_point.y - patch->top;
        const bool fits_across = left >= 0 && left + patch->width < SCREEN_WIDTH;
        if (!fits_across || top < 0 || top + patch->height >= SCREEN_HEIGHT) continue;
        place(s, wad, graphic + i, at_point.x, at_point.y);
        return;
    }
}

OFA_FUNCTION void place_way(RenderScratch& s, const Game& game, const WadBlob& wad) {
    const Intermission& in = game.intermission;
    if (has_map(game)) {
        const ScreenPoint* places = LEVEL_PLACES[in.episode - 1];
        const int done = in.last_map == MAP_LEVELS ? in.next_map - 1 : in.last_map;
        for (int i = 0; i < done; ++i) place_sign(s, wad, GRAPHIC_WISPLAT, 1, places[i]);
        if (game.players[game.viewed].did_secret) place_sign(s, wad, GRAPHIC_WISPLAT, 1, places[MAP_LEVELS - 1]);
        const bool pointing = in.stage == STAGE_LEAVING || in.left % POINTER_PERIOD < POINTER_TICS;
        if (pointing) place_sign(s, wad, GRAPHIC_WIURH, 2, places[in.next_map - 1]);
    }
    const int name = level_name(game, in.next_map);
    place_title(s, wad, name, name, place_title(s, wad, GRAPHIC_WIENTER, name, TITLE_Y));
}

// The end of an episode or of the game is one picture.
OFA_FUNCTION int finale_picture(const Game& game) {
    if (game.commercial) return GRAPHIC_INTERPIC;
    switch (game.episode) {
        case 2: return GRAPHIC_VICTORY2;
        case 3: return GRAPHIC_PFUB;
        case 4: return GRAPHIC_ENDPIC;
        default: return GRAPHIC_CREDIT;
    }
}

OFA_FUNCTION void place_intermission(RenderScratch& s, const Game& game, const WadBlob& wad) {
    if (game.mode == MODE_FINALE) {
        place(s, wad, finale_picture(game), 0, 0);
        return;
    }
    place_map(s, game, wad);
    if (game.intermission.stage == STAGE_COUNTS && game.cooperative) place_everyones_scores(s, game, wad);
    else if (game.intermission.stage == STAGE_COUNTS) place_scores(s, game, wad);
    else place_way(s, game, wad);
}

}  // namespace render
}  // namespace doom
