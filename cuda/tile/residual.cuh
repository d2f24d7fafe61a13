// The end of a residual product's task on Hopper: y f4 = skip f4 + sums, through the ring.
#pragma once

#include "tile/lines.cuh"

namespace ofa {

// By a storer.
OFA_INLINE void store_residual(Pipeline& pipeline, const Slot& slot, int consumer, Position<STAGES>& changed) {
    const int stages = line_stages(slot.task);
    for (int i = 0; i < stages; ++i) store_lines(pipeline, slot, consumer, i, changed);
}

// What a thread has of 32 columns, eight pairs: group i of 8 columns in line h is pair 4 h + i.
OFA_INLINE void add_to_skip(uint32_t skip, const LinePlace& place, const float* sums) {
    float2 pairs[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) pairs[i] = load_near(place.at(skip, i / 4, i % 4));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float* const even = sums + 4 * (i % 4) + 2 * (i / 4);
        const float* const odd = sums + 4 * ((i + 2) % 4) + 2 * (i / 4);
        pairs[i].x += place.choose(even[0], odd[0]);
        pairs[i].y += place.choose(even[1], odd[1]);
        store_near(place.at(skip, i / 4, i % 4), pairs[i]);
    }
}

// By a consumer, after its sums.
OFA_INLINE void add_tile_to_skip(Pipeline& pipeline, float (&sums)[128]) {
    for_each_part<LINE_COLUMNS / 2, 2>(pipeline, sums, [&](int part, const float* own) {
        if (part * LINE_COLUMNS >= current_slot(pipeline).task.tile[3]) return;
        change_lines(pipeline, [&](const Worker& worker, uint32_t stage) {
            add_to_skip(sm90::shared_address(lines_at(pipeline, stage, 0, worker.consumer)), LinePlace(worker), own);
        });
    });
}

}  // namespace ofa
