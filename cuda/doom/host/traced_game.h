// A game that is played, drawn and written down tic by tic, as fast as it goes.
#pragma once

#include "../traced_tic.h"
#include "lanes.h"

namespace doom {

constexpr int REVERSED_LANES = 37;         // any number above 1: their order is what is tested

struct TracedGame : TwinGames {
    int32_t lanes;                         // 1: one thread; -1: reversed; else so many threads
    LanePool pool;
};

OFA_NOINLINE void draw_with_lanes(TracedGame& t, const DrawJob& job) {
    if (t.lanes == 1) {
        ofa::Block block(0, nullptr, 0);
        draw_job(block, job);
    } else if (t.lanes < 0) {
        ReversedLanes block(REVERSED_LANES);
        draw_job(block, job);
    } else {
        t.pool.run([](ThreadLane& lane, void* data) { draw_job(lane, *static_cast<const DrawJob*>(data)); },
                   const_cast<DrawJob*>(&job));
    }
}

struct Lanes {
    TracedGame& game;

    template <class F>
    void alone(F f) { f(); }
    void draw(const DrawJob& job) { draw_with_lanes(game, job); }
};

}  // namespace doom
