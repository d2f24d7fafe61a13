// Plays one game with a scripted player and writes a Moment per tic to standard output: the engine of doom_soak.py.
//     doom_soak BLOB EPISODE MAP SKILL BEHAVIOUR SEED TICS [NO_MONSTERS]
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "doom/doom.h"

using namespace doom;

// After the tic. Kept in step with MOMENT of doom_soak.py.
struct Moment {
    uint8_t episode, map, mode, life;      // GameMode, PlayerMode
    int16_t x, y;                          // map units
    int16_t sector, kills, secrets, health, turn;
    uint8_t buttons, weapon, goal, exhausted;
    uint32_t think_ns, tic_ns;
};

static uint8_t* read_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    const size_t size = size_t(ftell(file));
    rewind(file);
    uint8_t* data = static_cast<uint8_t*>(aligned_alloc(64, (size + 63) / 64 * 64));
    if (!data || fread(data, 1, size, file) != size) exit(2);
    fclose(file);
    return data;
}

static uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

static Moment moment(const Game& g) {
    const Player& p = g.players[g.viewed];
    const Mobj& m = g.mobjs[p.mobj];
    Moment now = {};
    now.episode = g.episode;
    now.map = g.map;
    now.mode = g.mode;
    now.life = p.mode;
    now.x = int16_t(m.x >> 16);
    now.y = int16_t(m.y >> 16);
    now.sector = int16_t(m.sector);
    now.kills = p.kill_count;
    now.secrets = p.secret_count;
    now.health = int16_t(p.health);
    now.turn = p.command.turn;
    now.buttons = p.command.buttons;
    now.weapon = uint8_t(p.ready_weapon);
    now.goal = g.script.goal_kind;
    now.exhausted = g.exhausted;
    return now;
}

int main(int argc, char** argv) {
    if (argc < 8) return 2;
    uint8_t* blob = read_file(argv[1]);
    const WadBlob& wad = *reinterpret_cast<const WadBlob*>(blob);
    Game* game = static_cast<Game*>(malloc(sizeof(Game)));
    NewGame settings = {};
    settings.players = 1;
    settings.episode = uint8_t(atoi(argv[2]));
    settings.map = uint8_t(atoi(argv[3]));
    settings.skill = uint8_t(atoi(argv[4]));
    settings.behaviour = uint8_t(atoi(argv[5]));
    settings.seed = uint32_t(atoi(argv[6]));
    settings.no_monsters = argc > 8 && atoi(argv[8]);
    doom_start(*game, wad, settings);
    for (int tics = atoi(argv[7]); tics > 0; --tics) {
        TicCommand all[MAX_PLAYERS] = {};
        const uint64_t before = now_ns();
        all[0] = player_think(*game, wad);
        const uint64_t thought = now_ns();
        doom_tic(*game, wad, all);
        Moment now = moment(*game);
        now.think_ns = uint32_t(thought - before);
        now.tic_ns = uint32_t(now_ns() - thought);
        fwrite(&now, sizeof now, 1, stdout);
    }
    free(game);
    free(blob);
}
