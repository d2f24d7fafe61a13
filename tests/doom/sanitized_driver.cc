// Plays and draws a demo and lets the scripted player play on, as a program of its own for sanitizers.
//     sanitized_driver BLOB COMMANDS SETTINGS SCRIPTED_TICS LANES
// COMMANDS: TicCommand [tics][MAX_PLAYERS]; SETTINGS: a NewGame.
#include <stdio.h>
#include <stdlib.h>

#include "doom/host/library.cpp"

static uint8_t* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    *size = size_t(ftell(file));
    rewind(file);
    uint8_t* data = static_cast<uint8_t*>(aligned_alloc(64, (*size + 63) / 64 * 64));
    if (fread(data, 1, *size, file) != *size) exit(2);
    fclose(file);
    return data;
}

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    size_t blob_size, commands_size, settings_size;
    uint8_t* blob = read_file(argv[1], &blob_size);
    uint8_t* commands = read_file(argv[2], &commands_size);
    uint8_t* settings = read_file(argv[3], &settings_size);
    const WadBlob* wad = reinterpret_cast<const WadBlob*>(blob);
    const int recorded = int(commands_size / sizeof(TicCommand) / MAX_PLAYERS), scripted = atoi(argv[4]);
    const int most = recorded > scripted ? recorded : scripted;
    TracedGame* game = static_cast<TracedGame*>(calloc(1, sizeof(TracedGame)));
    TraceRow* rows = static_cast<TraceRow*>(calloc(size_t(most), sizeof(TraceRow)));
    TraceLoad* loads = static_cast<TraceLoad*>(calloc(size_t(most) + 1, sizeof(TraceLoad)));
    TicCommand* played = static_cast<TicCommand*>(calloc(size_t(most) * MAX_PLAYERS, sizeof(TicCommand)));
    if (traced_start(game, wad, reinterpret_cast<NewGame*>(settings), atoi(argv[5]), 1)) return 2;
    traced_play(game, wad, reinterpret_cast<TicCommand*>(commands), recorded, 0, rows, loads);
    traced_play(game, wad, played, scripted, 1, rows, loads);
    printf("%d tics, exhausted %d\n", int(game->silent.tic), game->silent.exhausted);
    traced_stop(game);
    void* const all[] = {game, rows, loads, played, settings, commands, blob};
    for (void* memory : all) free(memory);
}
