// Plays a demo of one player and then the scripted player, for sanitizer builds.
//     sim_driver BLOB COMMANDS EPISODE MAP SKILL SCRIPTED_TICS
#include <stdio.h>
#include <stdlib.h>

#include "doom/doom.h"

using namespace doom;

static uint8_t* read_file(const char* path, long* size) {
    FILE* file = fopen(path, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    uint8_t* data = static_cast<uint8_t*>(aligned_alloc(64, (size_t(*size) + 63) / 64 * 64));
    if (fread(data, 1, size_t(*size), file) != size_t(*size)) exit(2);
    fclose(file);
    return data;
}

int main(int argc, char** argv) {
    if (argc != 7) return 2;
    long blob_size, commands_size;
    uint8_t* blob = read_file(argv[1], &blob_size);
    uint8_t* commands = read_file(argv[2], &commands_size);
    const WadBlob& wad = *reinterpret_cast<const WadBlob*>(blob);
    Game* game = static_cast<Game*>(malloc(sizeof(Game)));
    NewGame settings = {};
    settings.episode = uint8_t(atoi(argv[3]));
    settings.map = uint8_t(atoi(argv[4]));
    settings.skill = uint8_t(atoi(argv[5]));
    settings.players = 1;
    doom_start(*game, wad, settings);
    const TicCommand* recorded = reinterpret_cast<const TicCommand*>(commands);
    const int n = int(size_t(commands_size) / sizeof(TicCommand));
    for (int tic = 0; tic < n + atoi(argv[6]); ++tic) {
        TicCommand all[MAX_PLAYERS] = {};
        all[0] = tic < n ? recorded[tic] : player_think(*game, wad);
        doom_tic(*game, wad, all);
    }
    printf("%d tics, exhausted %d\n", int(game->tic), game->exhausted);
    free(game);
    free(commands);
    free(blob);
}
