// Snapshots of a game, once a second of its time, and the way back to them.
//
// They are a ring per game, in the order of their tics. Going back keeps those ahead, so that one can go forward again
// until the game goes on from where it is; the snapshots of the future that did not happen are given up then.
#pragma once

#include "doom/doom.h"
#include "doom/snapshot.h"
#include "task.h"

namespace ofa {

constexpr uint64_t FRAME_BYTES = FRAME_WIDTH * FRAME_HEIGHT;
constexpr uint64_t TICS_PER_SNAPSHOT = 35;

// All that the game's future depends on: the game, and its picture, which shows through where the next one leaves
// pixels out.
struct DoomState {
    doom::Game game;
    uint8_t view[FRAME_BYTES];
};

OFA_INLINE DoomState& snapshot_at(const Launch& launch, int64_t game, uint64_t number) {
    DoomState* ring = reinterpret_cast<DoomState*>(launch.doom_snapshots) + uint64_t(game) * launch.snapshot_slots;
    return ring[number % launch.snapshot_slots];
}

// All threads, behind a barrier.
OFA_FUNCTION void copy_state(Block& block, DoomState& to, const DoomState& from) {
    doom::copy_game(block, to.game, from.game);
    uint64_t* pixels = reinterpret_cast<uint64_t*>(to.view);
    const uint64_t* source = reinterpret_cast<const uint64_t*>(from.view);
    block.for_each(FRAME_BYTES / sizeof(uint64_t), [&](int64_t i) { pixels[i] = source[i]; });
    block.sync();
}

// Number of the next snapshot; the game is equal to it from here on.
OFA_FUNCTION uint64_t count_snapshot(DoomSeat& seat, uint64_t slots) {
    const uint64_t number = seat.snapshots++;
    if (seat.snapshots - seat.oldest_snapshot > slots) ++seat.oldest_snapshot;
    seat.restored = seat.snapshots;
    return number;
}

// Before a tic: what lies ahead of a restored game will not happen.
OFA_FUNCTION void leave_snapshot(DoomSeat& seat) {
    if (seat.restored == 0) return;
    seat.snapshots = seat.restored;
    seat.restored = 0;
}

// With the first tic of a new game: what was kept of another one is out of reach.
OFA_FUNCTION void forget_snapshots(DoomSeat& seat) {
    seat.oldest_snapshot = seat.snapshots;
    seat.restored = 0;
}

// Keeps the state of a game that has just been drawn, at its beginning and once a second.
OFA_FUNCTION void keep_snapshot(Block& block, const Launch& launch, int64_t number, const DoomState& state) {
    if (launch.snapshot_slots == 0 || (state.game.tic != 1 && state.game.tic % TICS_PER_SNAPSHOT != 0)) return;
    DoomSeat& seat = launch.doom_seats[number];
    const uint64_t kept = block.broadcast([&] { return count_snapshot(seat, launch.snapshot_slots); });
    copy_state(block, snapshot_at(launch, number, kept), state);
}

// The snapshot to which `seat.wind` seconds back (negative: forward) lead, as far as there are any; NONE_U64 for none.
OFA_FUNCTION uint64_t snapshot_wanted(const DoomSeat& seat) {
    if (seat.restored == 0) return NONE_U64;
    const int64_t wanted = int64_t(seat.restored) - 1 - seat.wind;
    const int64_t oldest = int64_t(seat.oldest_snapshot), newest = int64_t(seat.snapshots) - 1;
    return uint64_t(wanted < oldest ? oldest : wanted > newest ? newest : wanted);
}

// Moves the game along its snapshots by `seat.wind`. Where it stands is kept too, so that the way forward ends there.
// Returns the tics taken back, in the leader.
OFA_FUNCTION int32_t wind(Block& block, const Launch& launch, int64_t number, DoomState& state) {
    DoomSeat& seat = launch.doom_seats[number];
    const uint64_t slots = launch.snapshot_slots;
    const uint64_t here = block.broadcast(
        [&] { return slots == 0 || seat.wind <= 0 || seat.restored != 0 ? NONE_U64 : count_snapshot(seat, slots); });
    if (here != NONE_U64) copy_state(block, snapshot_at(launch, number, here), state);
    const uint64_t wanted = block.broadcast([&] { return seat.wind == 0 ? NONE_U64 : snapshot_wanted(seat); });
    if (wanted == NONE_U64) return 0;
    const uint64_t tics = block.broadcast([&] { return state.game.tic; });
    copy_state(block, state, snapshot_at(launch, number, wanted));
    if (!block.leader()) return 0;
    seat.restored = wanted + 1;
    return int32_t(int64_t(tics) - int64_t(state.game.tic));
}

OFA_FUNCTION void snapshot_status(const DoomSeat& seat, DoomStatus& status) {
    const uint64_t here = seat.restored != 0 ? seat.restored - 1 : seat.snapshots;
    status.behind = uint16_t(here - seat.oldest_snapshot);
    status.ahead = uint16_t(seat.restored != 0 ? seat.snapshots - seat.restored : 0);
}

}  // namespace ofa
