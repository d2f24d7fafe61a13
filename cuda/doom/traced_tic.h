// A tic that is played, drawn and written down, wherever: as one thread, as threads of the CPU, as a block of a GPU.
#pragma once

#include "render/draw.h"
#include "render/palette.h"
#include "trace.h"

namespace doom {

constexpr int VIEW_BYTES = render::SCREEN_WIDTH * render::VIEW_HEIGHT;
constexpr int FRAME_BYTES = render::SCREEN_WIDTH * render::SCREEN_HEIGHT;

// The cosmetic stream has two variants in a trace, so there are two games. `heard` takes the same commands and differs
// in nothing but cosmetic numbers, so all of the picture but the bar is drawn from `silent`. Who wants no trace has only
// that one.
struct TwinGames {
    Game silent, heard;
    int32_t traced;
    render::RenderScratch drawing;
    uint8_t frame[FRAME_BYTES];            // what is on the screen, with text
    uint8_t picture[FRAME_BYTES];          // of the last tic played, before text
};

struct DrawJob {
    TwinGames* game;
    const WadBlob* wad;
    bool heard, bar, text;                 // whose; nothing but the bar; text over it
};

template <class Block>
OFA_FUNCTION void draw_job(Block& block, const DrawJob& job) {
    TwinGames& t = *job.game;
    Game& g = job.heard ? t.heard : t.silent;
    if (job.text) render::draw_text(block, g, *job.wad, t.drawing, t.frame);
    else if (job.bar && g.mode == MODE_LEVEL)
        render::draw_status_bar(block, g, *job.wad, t.drawing, t.frame);
    else render::draw_picture(block, g, *job.wad, t.drawing, t.frame);
}

// Hashes of the picture's view and bar and of the frame's bar and whole, in one pass: each chain of multiplications
// waits for itself, so they run side by side.
OFA_NOINLINE void hash_pictures(const TwinGames& t, TraceRow& row) {
    Hash view, bar_ns, bar, full;
    for (int i = 0; i < VIEW_BYTES; ++i) {
        view.add_byte(t.picture[i]);
        full.add_byte(t.frame[i]);
    }
    for (int i = VIEW_BYTES; i < FRAME_BYTES; ++i) {
        bar_ns.add_byte(t.picture[i]);
        bar.add_byte(t.frame[i]);
        full.add_byte(t.frame[i]);
    }
    row.fb_view = view.value;
    row.fb_sbar_ns = bar_ns.value;
    row.fb_sbar = bar.value;
    row.fb_full = full.value;
}

OFA_NOINLINE void start_twins(TwinGames& t, const WadBlob& wad, NewGame settings, bool traced) {
    settings.sounds = 0;
    doom_start(t.silent, wad, settings);
    settings.sounds = 1;
    t.traced = traced;
    if (traced) doom_start(t.heard, wad, settings);
}

// The beginning of a tic; whether it loaded a level.
OFA_NOINLINE bool begin_traced_tic(TwinGames& t, const WadBlob& wad) {
    const bool first = t.silent.tic == 0;
    const uint32_t before = t.silent.loads;
    doom_begin_tic(t.silent, wad);
    if (t.traced) doom_begin_tic(t.heard, wad);
    return first || t.silent.loads != before;
}

// The rest of the tic, and its frame. Untraced, the row has the figures of the simulation only. `machine.alone(f)` runs f
// once, `machine.draw(job)` draws with all that the machine has; each is over when it returns.
template <class Machine>
OFA_FUNCTION void run_traced_tic(Machine& machine, TwinGames& t, const WadBlob& wad, const TicCommand* commands,
                                 TraceRow& row) {
    machine.alone([&] { doom_run_tic(t.silent, wad, commands); });
    machine.draw({&t, &wad, false, false, false});
    machine.alone([&] {
        memcpy(t.picture, t.frame, FRAME_BYTES);
        trace_simulation(t.silent, row);
        row.palette = int8_t(doom_palette(t.silent));
        row.fb_tanoob = uint8_t(t.silent.mode == MODE_LEVEL ? t.drawing.n_tangents_beyond : 0);
        if (t.traced) doom_run_tic(t.heard, wad, commands);
    });
    if (!t.traced) {
        machine.draw({&t, &wad, false, false, true});
        return;
    }
    machine.draw({&t, &wad, true, true, false});
    machine.draw({&t, &wad, true, false, true});
    machine.alone([&] {
        row.rnd = t.heard.cosmetic_random;
        row.face = int8_t(t.heard.status_bar.face);
        const StateHashes state = hash_state(t.silent);
        row.mobj_hash = state.mobjs;
        row.mobj_hash2 = state.mobjs2;
        row.sector_hash = state.sectors;
        hash_pictures(t, row);
    });
}

}  // namespace doom
