// Owned tasks: block `rank` of the `blocks` that share a token runs the tasks whose lane modulo `blocks` is its rank,
// in queue order. So a block knows its tasks before their inputs exist.
//
// Launch.seats says who is what. The block of an SM that begins to serve asks for a seat. The task that opens a token
// seats those who ask, and lets go whose role has changed, from the next token on. Seats stand for two tokens at least:
// a block reads its own while it works on a token, a new one as late as in its first token, and who opens the token
// after that has waited for both. All blocks have a task that signals before a token is sampled (most_seats), so that
// whatever they did in a token is seen by whoever opens the next one, and by those who see that it is open.
#pragma once

#include "sched/wait.h"

namespace ofa {

// Seat.blocks where it is no number of blocks. The block itself writes ASKED, or takes it back, until an opener has
// written ADMITTED over it; everything else is written by openers.
constexpr uint32_t SEAT_NONE = 0, SEAT_ADMITTED = NONE_U32 - 1, SEAT_ASKED = NONE_U32;

// What a block knows of its seat.
struct Place {
    uint64_t token;         // it works on
    uint64_t tokens_open;   // as far as it has seen
    uint32_t task;          // where in the queue the next task is looked for
    uint32_t rank, blocks;  // in this token; blocks = 0: no seat
    uint32_t next_rank, next_blocks;  // in the token after it, known once this one is open
};

OFA_INLINE bool is_owned(const Program& program) { return program.claims == CLAIM_OWNED; }

// As many as the task before the last waits for: their lanes count from 0, so that each block has one of them.
OFA_INLINE uint32_t most_seats(const Program& program) { return program.tasks[program.n_tasks - 2].waits[0].count; }

// The first task from `from` on whose lane is the block's, or n_tasks. Lanes come in runs that count up from 0, so that
// a block's task in a run is found from any other, and a run is skipped from its last task.
OFA_INLINE uint32_t next_owned(const Program& program, uint32_t from, uint32_t rank, uint32_t blocks) {
    const Task* tasks = program.tasks;
    while (from < program.n_tasks) {
        const uint32_t lane = tasks[from].lane;
        const uint32_t distance = (rank + blocks - lane % blocks) % blocks;
        const uint32_t last = program.n_tasks - 1;
        uint32_t at = distance < last - from ? from + distance : last;
        if (tasks[at].lane == lane + distance) return at;
        while (at - tasks[at].lane > from) at -= tasks[at].lane + 1u;  // the end of the run before
        from = at + 1;
    }
    return program.n_tasks;
}

// Whether the block has a seat, after a step to the next token where it is done with this one.
OFA_INLINE bool has_seat(const Program& program, Place& place) {
    for (bool stepped = false; place.blocks != 0; stepped = true) {
        place.task = next_owned(program, place.task, place.rank, place.blocks);
        if (place.task < program.n_tasks || stepped) return true;
        place = {place.token + 1, place.tokens_open, 0, place.next_rank, place.next_blocks, place.next_rank,
                 place.next_blocks};
    }
    return false;
}

// Whether the block may take up another role: it has no seat, and takes back that it asked for one.
OFA_INLINE bool gives_up_seat(const Launch& launch, uint32_t sm, const Program& program, Place& place) {
    if (has_seat(program, place)) return false;
    uint32_t* blocks = &launch.seats[sm].blocks;
    return compare_exchange(blocks, SEAT_ASKED, SEAT_NONE) || load_acquire(blocks) == SEAT_NONE;
}

// Takes the seat that the block was given, or asks for one. Where nobody is left to give any it takes the first itself.
OFA_INLINE bool take_seat(const Launch& launch, uint32_t sm, Place& place) {
    ServeState& serve = *launch.serve;
    Seat& seat = launch.seats[sm];
    uint32_t blocks = load_acquire(&seat.blocks);
    if (blocks == SEAT_ADMITTED) return false;
    if (blocks == SEAT_NONE || blocks == SEAT_ASKED) {
        if (!compare_exchange(&serve.members, 0u, 1u)) {
            if (blocks == SEAT_ASKED) return false;
            store_release(&seat.blocks, SEAT_ASKED);  // over nothing but NONE
            exchange_seq_cst(&serve.seats_asked, 1u);
            return false;
        }
        blocks = 1;
        seat.first_token = load_acquire(&serve.opened);
        seat.rank = 0;
        store_release(&seat.blocks, blocks);
    }
    place = {seat.first_token, 0, 0, seat.rank, blocks, 0, 0};
    return true;
}

// Waits until the token of an owned task is open, which only the task that opens it need not. Then the version it reads
// is pinned, and the block's seat in the token after it stands fast.
OFA_INLINE bool wait_for_opening(const TaskContext& ctx, Place& place) {
    const Launch& launch = *ctx.launch;
    const Program& program = launch.programs[ctx.program];
    if (!is_owned(program) || ctx.task == program.tasks || place.tokens_open > ctx.iteration) return true;
    const uint64_t* opened = &launch.serve->opened;
    if (!wait_until(ctx, NONE_U32, ctx.iteration + 1, [&] { return load_acquire(opened); })) return false;
    place.tokens_open = ctx.iteration + 1;
    place.next_rank = launch.seats[ctx.sm].rank;
    place.next_blocks = load_relaxed(&launch.seats[ctx.sm].blocks);
    return true;
}

// Seats the blocks of the next token; returns how many there are. By the task that opens this one.
OFA_FUNCTION uint32_t seat_next_token(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    const uint32_t members = load_relaxed(&serve.members);
    const bool just_changed = launch.seats[ctx.sm].first_token == ctx.iteration;
    if (load_relaxed(&serve.seats_asked) == 0 || just_changed) return members;
    exchange_seq_cst(&serve.seats_asked, 0u);  // before the look at who asks
    const uint32_t most = most_seats(launch.programs[ctx.program]);
    uint32_t blocks = 0, admitted = 0, rank = 0;
    for (uint32_t sm = 0; sm < launch.n_sms; ++sm) {
        Seat& seat = launch.seats[sm];
        const uint32_t seen = load_acquire(&seat.blocks);
        const bool serves = load_acquire(&launch.roles[sm]) == ROLE_SERVE;
        if (seen == SEAT_ASKED) {
            const bool fits = serves && members + admitted < most;
            if (!fits || !compare_exchange(&seat.blocks, SEAT_ASKED, SEAT_ADMITTED)) continue;
            ++admitted;
            ++blocks;
        } else if (seen != SEAT_NONE) {
            seat.first_token = ctx.iteration + 1;
            store_relaxed(&seat.blocks, serves ? SEAT_ADMITTED : SEAT_NONE);
            blocks += serves ? 1 : 0;
        }
    }
    for (uint32_t sm = 0; sm < launch.n_sms; ++sm) {
        Seat& seat = launch.seats[sm];
        if (load_relaxed(&seat.blocks) != SEAT_ADMITTED) continue;
        seat.first_token = ctx.iteration + 1;
        seat.rank = rank++;
        store_release(&seat.blocks, blocks);
    }
    return blocks;
}

// Lets the other blocks begin with this token: its version is pinned and its input is known.
OFA_FUNCTION void open_to_blocks(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    const uint32_t members = seat_next_token(ctx);
    store_relaxed(&launch.queues[ROLE_SERVE].next, (ctx.iteration + 1) * launch.programs[ctx.program].n_tasks);
    release_to_blocks(&serve.opened, ctx.iteration + 1);
    release_to_blocks(&serve.members, members);  // last: with none left, the next one begins where `opened` says
}

}  // namespace ofa
