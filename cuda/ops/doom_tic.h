// One tic and one frame of a game, paced by the clock.
#pragma once

#include "doom/automap/automap.h"
#include "doom/doom.h"
#include "doom/render/draw.h"
#include "doom/render/palette.h"
#include "ops/doom_rewind.h"
#include "sched/boundary.h"
#include "sched/events.h"

namespace ofa {

// A game and what drawing it needs. All zero before the first tic.
struct DoomTable {
    DoomState state;
    doom::render::RenderScratch drawing;
    doom::Automap automap;
};

// What an iteration of the program is to a game. A turn that shows plays no tic: it winds the game, or shows its picture
// with another map. A held game passes its turn until it is let through, so that the others get theirs.
enum GameTurn : uint32_t { GAME_ENDS, GAME_WAITS, GAME_PLAYS, GAME_SHOWS };

OFA_INLINE DoomTable& table_at(const Launch& launch, int64_t number) {
    return reinterpret_cast<DoomTable*>(launch.doom_games)[number];
}

OFA_INLINE const doom::WadBlob& wad_of(const Launch& launch) {
    return *reinterpret_cast<const doom::WadBlob*>(launch.doom_wad);
}

// True for an event whose effect is to be shown before the next tic.
OFA_FUNCTION bool apply_tic_event(DoomTable& table, DoomSeat& seat, const Event& event) {
    doom::Game& game = table.state.game;
    const bool begun = game.tic != 0 && seat.new_game == 0;
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
    } else if (event.action == ACTION_REWIND) {
        seat.wind = begun ? args[0] : 0;
        return begun;
    } else if (event.action == ACTION_AUTOMAP) {
        seat.wind = 0;
        doom::doom_set_automap(table.automap, game, args[0], args[1], args[2], args[3]);
        return begun;
    }
    return false;
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

// Waits for the turn. While the game is held, turns come as the host asks: with a tic, or for events alone.
OFA_FUNCTION GameTurn wait_for_turn(const TaskContext& ctx, DoomSeat& seat) {
    constexpr uint64_t LONGEST_CATCH_UP_NS = 1000000000;
    const Control& control = *ctx.launch->control;
    GameTurn turn = GAME_PLAYS;
    if (seat.next_tic_ns == 0) seat.next_tic_ns = now_ns();
    const bool open = pass_boundary(ctx, &seat.next_tic_ns, [&] {
        if (load_acquire(&control.single_tics) != seat.single_tics) {
            ++seat.single_tics;
            turn = GAME_PLAYS;
            return true;
        }
        turn = GAME_WAITS;
        if (load_acquire(&control.passes) == seat.passes) return false;
        ++seat.passes;
        return true;
    });
    if (!open) return GAME_ENDS;
    if (held(ctx)) return turn;
    seat.single_tics = load_relaxed(&control.single_tics);  // what was not used is not kept for the next time
    seat.passes = load_relaxed(&control.passes);
    // Tics that come late are made up for, within a second, so that the rate is right on a busy machine too.
    seat.next_tic_ns += load_relaxed(&control.tic_interval_ns);
    const uint64_t earliest = now_ns() - LONGEST_CATCH_UP_NS;
    if (seat.next_tic_ns < earliest) seat.next_tic_ns = earliest;
    return GAME_PLAYS;
}

// The turn, with the events applied that are due. After one that shows, the others wait for the turn after it.
OFA_FUNCTION GameTurn open_turn(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    DoomSeat& seat = launch.doom_seats[ctx.row0()];
    GameTurn turn = wait_for_turn(ctx, seat);
    if (turn == GAME_ENDS) return turn;
    DoomTable& table = table_at(launch, ctx.row0());
    apply_events(launch, CLOCK_TIC, seat.tics, [&](const Event& event) {
        if (event.target != uint32_t(ctx.row0()) || turn == GAME_SHOWS) return false;
        if (apply_tic_event(table, seat, event)) turn = GAME_SHOWS;
        return true;
    });
    return turn;
}

// Keeps what a demo needs: the command, and where a game begins that begins with this tic.
OFA_FUNCTION void log_command(DoomCommand& log, const doom::Game& game, const doom::TicCommand& command) {
    log = {};
    log.forward = command.forward;
    log.side = command.side;
    log.turn = int8_t(command.turn >> 8);
    log.buttons = command.buttons;
    log.starts = game.tic == 1;
    log.episode = game.episode;
    log.map = game.map;
    log.skill = game.skill;
}

OFA_INLINE DoomCommand& command_log(const Launch& launch, int64_t number) {
    return launch.doom_commands[uint64_t(number) * COMMAND_RING + launch.doom_seats[number].tics % COMMAND_RING];
}

OFA_FUNCTION void simulate(const TaskContext& ctx, doom::Game& game, DoomSeat& seat, DoomStatus& status) {
    const doom::WadBlob& wad = wad_of(*ctx.launch);
    leave_snapshot(seat);
    if (seat.new_game != 0) start_game(game, wad, seat);
    const uint64_t started_ns = now_ns();
    doom::TicCommand commands[doom::MAX_PLAYERS] = {};
    commands[game.viewed] = doom::player_think(game, wad);
    status.think_ns = uint32_t(now_ns() - started_ns);
    doom::doom_tic(game, wad, commands);
    // The time that setting a level up takes is not made up for: its first second would race by.
    if (game.level_tics <= 1) seat.next_tic_ns = now_ns() + load_relaxed(&ctx.launch->control->tic_interval_ns);
    if (game.tic == 1) forget_snapshots(seat);
    log_command(command_log(*ctx.launch, ctx.row0()), game, commands[game.viewed]);
}

// The tic and its view, drawn over the one before, which shows through where nothing is drawn.
OFA_FUNCTION void play_tic(Block& block, const TaskContext& ctx, DoomTable& table, DoomStatus& status) {
    const Launch& launch = *ctx.launch;
    DoomState& state = table.state;
    if (block.leader()) simulate(ctx, state.game, launch.doom_seats[ctx.row0()], status);
    block.sync();
    const uint64_t started_ns = now_ns();
    doom::doom_draw(block, state.game, wad_of(launch), table.drawing, state.view);
    block.sync();
    if (block.leader()) status.render_ns = uint32_t(now_ns() - started_ns);
    keep_snapshot(block, launch, ctx.row0(), state);
}

// The game as it is, or as it was.
OFA_FUNCTION void show_again(Block& block, const TaskContext& ctx, DoomState& state, DoomStatus& status) {
    const int32_t undone = wind(block, *ctx.launch, ctx.row0(), state);
    if (!block.leader()) return;
    status.think_ns = status.render_ns = 0;
    DoomCommand& log = command_log(*ctx.launch, ctx.row0());
    log = {};
    log.skipped = 1;
    log.undone = undone;
}

// The turn of game `row0`, its picture and figures into the next frame slot. The picture of frame n is complete once
// telemetry's `frames` says n.
OFA_FUNCTION void take_turn(Block& block, const TaskContext& ctx, GameTurn turn) {
    const Launch& launch = *ctx.launch;
    const int64_t number = ctx.row0();
    DoomTable& table = table_at(launch, number);
    DoomSeat& seat = launch.doom_seats[number];
    uint64_t* frames = &launch.telemetry->frames[number];
    const uint64_t shown = *frames;
    const uint64_t slot = uint64_t(number) * FRAME_SLOTS + shown % FRAME_SLOTS;
    DoomStatus& status = launch.doom_status[slot];
    if (turn == GAME_PLAYS) play_tic(block, ctx, table, status);
    else show_again(block, ctx, table.state, status);
    uint8_t* frame = launch.frames + slot * FRAME_BYTES;
    uint64_t* to = reinterpret_cast<uint64_t*>(frame);
    const uint64_t* from = reinterpret_cast<const uint64_t*>(table.state.view);
    block.for_each(FRAME_BYTES / 8, [&](int64_t i) { to[i] = from[i]; });
    doom::doom_draw_automap(block, table.state.game, wad_of(launch), table.drawing, table.automap, frame);
    block.sync();
    if (!block.leader()) return;
    ++seat.tics;
    doom::doom_status(table.state.game, status);
    snapshot_status(seat, status);
    status.automap = uint8_t(table.automap.mode);
    status.tic = seat.tics;
    status.palette = uint8_t(doom::doom_palette(table.state.game));
    status.time_ns = now_ns();
    store_release(frames, shown + 1);
}

OFA_OP void op_doom_tic(Block& block, const TaskContext& ctx) {
    const GameTurn turn = block.broadcast([&] { return open_turn(ctx); });
    if (turn == GAME_PLAYS || turn == GAME_SHOWS) take_turn(block, ctx, turn);
}

}  // namespace ofa
