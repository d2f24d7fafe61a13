// One tic and one frame of a game, paced by the clock.
#pragma once

#include "doom/doom.h"
#include "doom/render/draw.h"
#include "doom/render/palette.h"
#include "sched/boundary.h"
#include "sched/events.h"

namespace ofa {

// A game and what its renderer keeps from frame to frame. All zero before the first tic.
struct DoomTable {
    doom::Game game;
    doom::render::RenderScratch drawing;
};

OFA_INLINE DoomTable& table_at(const Launch& launch, int64_t number) {
    return reinterpret_cast<DoomTable*>(launch.doom_games)[number];
}

OFA_INLINE const doom::WadBlob& wad_of(const Launch& launch) {
    return *reinterpret_cast<const doom::WadBlob*>(launch.doom_wad);
}

OFA_FUNCTION void apply_tic_event(doom::Game& game, DoomSeat& seat, const Event& event) {
    const int32_t* args = event.args;
    if (event.action == ACTION_BEHAVIOUR) {
        seat.behaviour = uint32_t(args[0]);
        doom::doom_set_behaviour(game, args[0]);
    } else if (event.action == ACTION_KEYS) {
        doom::doom_set_keys(game, args[0], args[1], args[2], args[3]);
    } else if (event.action == ACTION_NEW_GAME) {
        seat.episode = args[0];
        seat.map = args[1];
        seat.skill = args[2];
        seat.seed = uint32_t(args[3]);
        seat.new_game = 1;
    }
}

OFA_FUNCTION void start_game(doom::Game& game, const doom::WadBlob& wad, DoomSeat& seat) {
    doom::NewGame start = {};
    start.episode = uint8_t(seat.episode);
    start.map = uint8_t(seat.map);
    start.skill = uint8_t(seat.skill);
    start.players = 1;
    start.behaviour = uint8_t(seat.behaviour);
    start.seed = seat.seed;
    doom::doom_start(game, wad, start);
    seat.new_game = 0;
}

// Waits for the tic's turn; false when the run ends. While the run is paused, tics pass one by one as the host asks.
OFA_FUNCTION bool open_tic(const TaskContext& ctx, DoomSeat& seat) {
    constexpr uint64_t LONGEST_CATCH_UP_NS = 1000000000;
    const Control& control = *ctx.launch->control;
    if (seat.next_tic_ns == 0) seat.next_tic_ns = now_ns();
    const bool open = pass_boundary(ctx, &seat.next_tic_ns, [&] {
        if (load_acquire(&control.single_tics) == seat.single_tics) return false;
        ++seat.single_tics;
        return true;
    });
    if (!open) return false;
    if (load_acquire(&control.pause) != 0) return true;
    seat.single_tics = load_relaxed(&control.single_tics);  // what was not used in a pause is not kept for the next
    // Tics that come late are made up for, within a second, so that the rate is right on a busy machine too.
    seat.next_tic_ns += load_relaxed(&control.tic_interval_ns);
    const uint64_t earliest = now_ns() - LONGEST_CATCH_UP_NS;
    if (seat.next_tic_ns < earliest) seat.next_tic_ns = earliest;
    return true;
}

// Keeps what a demo needs: the command, and where a game begins that begins with this tic.
OFA_FUNCTION void log_command(DoomCommand& log, const doom::Game& game, const doom::TicCommand& command) {
    log.forward = command.forward;
    log.side = command.side;
    log.turn = int8_t(command.turn >> 8);
    log.buttons = command.buttons;
    log.starts = game.tic == 1;
    log.episode = game.episode;
    log.map = game.map;
    log.skill = game.skill;
}

OFA_FUNCTION void simulate(const TaskContext& ctx, doom::Game& game, DoomSeat& seat, DoomStatus& status) {
    const doom::WadBlob& wad = wad_of(*ctx.launch);
    apply_events(*ctx.launch, CLOCK_TIC, seat.tics, [&](const Event& event) {
        if (event.target != uint32_t(ctx.row0())) return false;
        apply_tic_event(game, seat, event);
        return true;
    });
    if (seat.new_game != 0) start_game(game, wad, seat);
    const uint64_t started_ns = now_ns();
    doom::TicCommand commands[doom::MAX_PLAYERS] = {};
    commands[game.viewed] = doom::player_think(game, wad);
    status.think_ns = uint32_t(now_ns() - started_ns);
    doom::doom_tic(game, wad, commands);
    DoomCommand* log = ctx.launch->doom_commands + uint64_t(ctx.row0()) * COMMAND_RING;
    log_command(log[seat.tics % COMMAND_RING], game, commands[game.viewed]);
    ++seat.tics;
}

// Draws over a copy of the frame before, which shows through where nothing is drawn.
OFA_FUNCTION void draw_frame(Block& block, const TaskContext& ctx, uint64_t before, uint64_t slot) {
    constexpr uint64_t FRAME_BYTES = FRAME_WIDTH * FRAME_HEIGHT;
    const Launch& launch = *ctx.launch;
    uint64_t* to = reinterpret_cast<uint64_t*>(launch.frames + slot * FRAME_BYTES);
    const uint64_t* from = reinterpret_cast<const uint64_t*>(launch.frames + before * FRAME_BYTES);
    block.for_each(FRAME_BYTES / 8, [&](int64_t i) { to[i] = from[i]; });
    block.sync();
    DoomTable& table = table_at(launch, ctx.row0());
    doom::doom_draw(block, table.game, wad_of(launch), table.drawing, reinterpret_cast<uint8_t*>(to));
    block.sync();
}

// A tic of game `row0`, its picture and figures into the next frame slot. The picture of frame n is complete once
// telemetry's `frames` says n.
OFA_FUNCTION void play_tic(Block& block, const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    const int64_t number = ctx.row0();
    DoomSeat& seat = launch.doom_seats[number];
    doom::Game& game = table_at(launch, number).game;
    uint64_t* frames = &launch.telemetry->frames[number];
    const uint64_t shown = *frames;
    const uint64_t first_slot = uint64_t(number) * FRAME_SLOTS;
    const uint64_t slot = first_slot + shown % FRAME_SLOTS;
    DoomStatus& status = launch.doom_status[slot];
    if (block.leader()) simulate(ctx, game, seat, status);
    block.sync();
    const uint64_t started_ns = now_ns();
    draw_frame(block, ctx, first_slot + (shown + FRAME_SLOTS - 1) % FRAME_SLOTS, slot);
    if (!block.leader()) return;
    doom::doom_status(game, status);
    status.tic = seat.tics;
    status.palette = uint8_t(doom::doom_palette(game));
    status.time_ns = now_ns();
    status.render_ns = uint32_t(status.time_ns - started_ns);
    store_release(frames, shown + 1);
}

OFA_OP void op_doom_tic(Block& block, const TaskContext& ctx) {
    if (block.broadcast([&] { return open_tic(ctx, ctx.launch->doom_seats[ctx.row0()]); })) play_tic(block, ctx);
}

}  // namespace ofa
