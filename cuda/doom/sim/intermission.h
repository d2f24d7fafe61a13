// Between two levels: figures that count up, the next place, and the end of an episode.
#pragma once

#include "level.h"

namespace doom {

constexpr int COUNT_PAUSE_TICS = 35, NEXT_PLACE_TICS = 4 * 35, LEAVING_TICS = 10, FINALE_TICS = 50;

OFA_FUNCTION int par_seconds(const Game& g, int map) {
    OFA_TABLE int16_t doom1[27] = {30, 75, 120, 90, 165, 180, 180, 30, 165, 90, 90, 90, 120, 90,
                                   360, 240, 30, 170, 90, 45, 90, 150, 90, 90, 165, 30, 135};
    OFA_TABLE int16_t doom2[32] = {30, 90, 120, 120, 90, 150, 120, 120, 270, 90, 210, 150, 150, 150, 210, 150,
                                   420, 150, 210, 150, 240, 150, 180, 150, 150, 300, 330, 420, 300, 180, 120, 30};
    if (g.commercial) return doom2[map - 1];
    // The fourth episode has none; the original reads on into the next table.
    return g.episode <= 3 ? doom1[(g.episode - 1) * 9 + map - 1] : doom2[map];
}

OFA_FUNCTION int map_after(const Game& g, bool secret) {
    if (g.commercial) {
        if (secret) return g.map == 15 ? 31 : g.map == 31 ? 32 : g.map + 1;
        return g.map == 31 || g.map == 32 ? 16 : g.map + 1;
    }
    if (secret) return 9;
    if (g.map != 9) return g.map + 1;
    return g.episode == 1 ? 4 : g.episode == 2 ? 6 : g.episode == 3 ? 7 : 3;
}

OFA_FUNCTION void draw_animation_starts(WorldBase& w) {
    w.g.intermission.animation_tics = w.g.intermission.tics;
    w.g.intermission.animation_random = w.g.cosmetic_random;
    const int always = w.g.commercial ? 0 : w.g.episode == 1 ? 10 : w.g.episode == 3 ? 6 : 0;
    for (int i = 0; i < always; ++i) next_cosmetic_random(w);
}

OFA_FUNCTION int percent(int count, int total) { return count * 100 / (total ? total : 1); }

// Others killed, less the own deaths by the level.
OFA_FUNCTION int net_frags(const Game& g, int player) {
    int frags = 0;
    for (int i = 0; i < MAX_PLAYERS; ++i)
        if (g.present[i]) frags += i == player ? -g.players[player].frags[i] : g.players[player].frags[i];
    return frags;
}

// The level is over: players lose what belongs to it, the scores begin.
OFA_FUNCTION void complete_level(WorldBase& w) {
    Game& g = w.g;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!g.present[i]) continue;
        Player& p = g.players[i];
        memset(p.powers, 0, sizeof p.powers);
        memset(p.cards, 0, sizeof p.cards);
        g.mobjs[p.mobj].flags &= ~uint32_t(MF_SHADOW);
        p.extra_light = p.fixed_colormap = p.damage_count = p.bonus_count = 0;
        if (!g.commercial && g.map == 9) p.did_secret = 1;
    }
    Intermission& in = g.intermission;
    memset(&in, 0, sizeof in);
    in.episode = g.episode;
    in.last_map = g.map;
    in.next_map = map_after(g, g.secret_exit);
    in.secret_exit = g.secret_exit;
    int all_frags = 0;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        const Player& p = g.players[i];
        const int scores[SCORES] = {percent(p.kill_count, g.total_kills), percent(p.item_count, g.total_items),
                                    percent(p.secret_count, g.total_secrets), net_frags(g, i)};
        for (int score = 0; score < SCORES; ++score) {
            in.scores[i][score] = scores[score];
            in.shown[i][score] = g.cooperative ? 0 : -1;
        }
        if (g.present[i]) all_frags += scores[SCORE_FRAGS];
    }
    in.frags_count = g.cooperative && all_frags != 0;
    in.seconds = g.level_tics / 35;
    in.par_seconds = par_seconds(g, g.map);
    in.shown_seconds = in.shown_par = -1;
    in.step = 1;
    in.left = COUNT_PAUSE_TICS;
    const bool victory = !g.commercial && g.map == 8;
    g.mode = victory ? MODE_FINALE : MODE_INTERMISSION;
    if (!victory) draw_animation_starts(w);
}

OFA_FUNCTION bool count_up(int32_t& shown, int target, int step) {
    shown += step;
    if (shown < target) return false;
    shown = target;
    return true;
}

// One score of everybody who is counted: it ticks while it counts; true when it is done.
OFA_FUNCTION bool count_score(WorldBase& w, Score score, int step) {
    Game& g = w.g;
    Intermission& in = g.intermission;
    if (!(in.tics & 3)) start_sound_everywhere(w, SOUND_PISTOL);
    bool done = true;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        const bool counted = g.cooperative ? g.present[i] : i == g.viewed;
        if (counted && !count_up(in.shown[i][score], in.scores[i][score], step)) done = false;
    }
    return done;
}

OFA_FUNCTION bool count_time(WorldBase& w) {
    Intermission& in = w.g.intermission;
    if (!(in.tics & 3)) start_sound_everywhere(w, SOUND_PISTOL);
    const bool time_done = count_up(in.shown_seconds, in.seconds, 3);
    return count_up(in.shown_par, in.par_seconds, 3) && time_done;
}

// A step is done: it bangs. Several players have frags in place of the time, or nothing.
OFA_FUNCTION void end_step(WorldBase& w, int sound) {
    Intermission& in = w.g.intermission;
    start_sound_everywhere(w, sound);
    in.step += in.step == 6 && w.g.cooperative && !in.frags_count ? 3 : 1;
}

OFA_FUNCTION void begin_stage(Intermission& in, IntermissionStage stage, int tics) {
    in.stage = stage;
    in.left = tics;
    in.hurry = 0;
}

OFA_FUNCTION void tick_counts(WorldBase& w, Intermission& in) {
    if (in.hurry && in.step != 10) {
        in.hurry = 0;
        memcpy(in.shown, in.scores, sizeof in.shown);
        in.shown_seconds = in.seconds;
        in.shown_par = in.par_seconds;
        in.step = 10;
        start_sound_everywhere(w, SOUND_BAREXP);
    }
    switch (in.step) {
        case 2: if (count_score(w, SCORE_KILLS, 2)) end_step(w, SOUND_BAREXP); break;
        case 4: if (count_score(w, SCORE_ITEMS, 2)) end_step(w, SOUND_BAREXP); break;
        case 6: if (count_score(w, SCORE_SECRETS, 2)) end_step(w, SOUND_BAREXP); break;
        case 8:
            if (w.g.cooperative) {
                if (count_score(w, SCORE_FRAGS, 1)) end_step(w, SOUND_PLDETH);
            } else if (count_time(w)) {
                end_step(w, SOUND_BAREXP);
            }
            break;
        case 10:
            if (!in.hurry) break;
            start_sound_everywhere(w, SOUND_SGCOCK);
            if (w.g.commercial) {
                begin_stage(in, STAGE_LEAVING, LEAVING_TICS);
            } else {
                begin_stage(in, STAGE_NEXT_PLACE, NEXT_PLACE_TICS);
                draw_animation_starts(w);
            }
            break;
        default:
            if (--in.left == 0) {
                ++in.step;
                in.left = COUNT_PAUSE_TICS;
            }
    }
}

OFA_FUNCTION bool has_story_after(const Game& g) {
    if (!g.commercial) return false;
    return g.map == 6 || g.map == 11 || g.map == 20 || g.map == 30 || (g.secret_exit && (g.map == 15 || g.map == 31));
}

OFA_FUNCTION void tick_intermission(WorldBase& w) {
    Game& g = w.g;
    Intermission& in = g.intermission;
    ++in.tics;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!g.present[i]) continue;
        Player& p = g.players[i];
        const bool fire = p.command.buttons & BUTTON_FIRE, use = p.command.buttons & BUTTON_USE;
        if ((fire && !p.attack_down) || (use && !p.use_down)) in.hurry = 1;
        p.attack_down = fire;
        p.use_down = use;
    }
    if (in.stage == STAGE_COUNTS) {
        tick_counts(w, in);
    } else if (in.stage == STAGE_NEXT_PLACE) {
        if (--in.left == 0 || in.hurry) begin_stage(in, STAGE_LEAVING, LEAVING_TICS);
    } else if (--in.left == 0) {
        if (g.secret_exit)
            for (Player& p : g.players) p.did_secret = 1;
        if (has_story_after(g)) g.mode = MODE_FINALE;
        else g.action = NEXT_WORLD_DONE;
    }
}

// The story ends at a button; behind the last level of an episode or of the game a new game begins.
OFA_FUNCTION void tick_finale(Game& g) {
    if (g.intermission.finale_tics++ <= FINALE_TICS) return;
    if (g.stays_at_end && (!g.commercial || g.map == 30)) return;
    for (int i = 0; i < MAX_PLAYERS; ++i)
        if (g.present[i] && g.players[i].command.buttons) g.action = NEXT_WORLD_DONE;
}

}  // namespace doom
