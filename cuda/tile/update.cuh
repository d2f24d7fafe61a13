// The second half of a weight gradient's task on Hopper: AdamW on the tile's master, m and v, which come and go through the
// ring, then the next version in both orders. The gradient stays in the consumers' registers.
#pragma once

#include "tile/adamw.cuh"
#include "tile/lines.cuh"

namespace ofa {

constexpr int NEXT_VERSION = 5, STREAMED_VERSION = 6;  // operands

// By a storer.
OFA_INLINE void store_update(Pipeline& pipeline, const Slot& slot, int consumer, Position<STAGES>& changed,
                             Position<BUFFERS>& buffers) {
    const Task& task = slot.task;
    const int stages = line_stages(task);
    for (int i = 0; i < stages; ++i) {
        store_lines(pipeline, slot, consumer, i, changed);
        const bool whole_chunk = i % 2 == 1 || i + 1 == stages;
        if (whole_chunk)
            send_chunk(pipeline, slot, consumer, NEXT_VERSION, task.tile[2] + i / 2 * CHUNK_COLUMNS, buffers);
    }
}

// A quarter of what a thread has of a stage: two groups of columns of a line.
struct StateQuarter {
    float2 p[2], m[2], v[2];
};

// A consumer's rows of master, m and v in a stage. Quarter q: groups q / 2 and q / 2 + 2 of line q % 2.
struct StageState {
    const LinePlace place;
    uint32_t master, m, v;  // addresses in shared memory

    OFA_INLINE StageState(Pipeline& pipeline, uint32_t stage, int consumer, const LinePlace& place)
        : place(place), master(sm90::shared_address(lines_at(pipeline, stage, 0, consumer))),
          m(sm90::shared_address(lines_at(pipeline, stage, 1, consumer))),
          v(sm90::shared_address(lines_at(pipeline, stage, 2, consumer))) {}

    OFA_INLINE StateQuarter load(int q) const {
        StateQuarter quarter;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            quarter.p[i] = load_near(place.at(master, q % 2, q / 2 + 2 * i));
            quarter.m[i] = load_near(place.at(m, q % 2, q / 2 + 2 * i));
            quarter.v[i] = load_near(place.at(v, q % 2, q / 2 + 2 * i));
        }
        return quarter;
    }
    OFA_INLINE void store(int q, const StateQuarter& quarter) const {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            store_near(place.at(master, q % 2, q / 2 + 2 * i), quarter.p[i]);
            store_near(place.at(m, q % 2, q / 2 + 2 * i), quarter.m[i]);
            store_near(place.at(v, q % 2, q / 2 + 2 * i), quarter.v[i]);
        }
    }
};

// The next version comes to be in `words`, in the order of the sums.
OFA_INLINE void update_quarter(const FastAdamW& adamw, const LinePlace& place, int q, StateQuarter& state, const float* sums,
                               uint32_t (&words)[LINE_COLUMNS / 4]) {
    uint32_t next[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float* const even = sums + 4 * (q / 2 + 2 * i) + 2 * (q % 2);
        const float* const odd = sums + 4 * (q / 2 + 2 * (1 - i)) + 2 * (q % 2);
        float2& p = state.p[i];
        p.x = fast_update(adamw, place.choose(even[0], odd[0]), p.x, state.m[i].x, state.v[i].x);
        p.y = fast_update(adamw, place.choose(even[1], odd[1]), p.y, state.m[i].y, state.v[i].y);
        next[i] = pack(p.x, p.y);
    }
    words[2 * (q / 2) + q % 2] = place.odd ? next[1] : next[0];
    words[2 * (q / 2 + 2) + q % 2] = place.odd ? next[0] : next[1];
}

// A quarter at a time, of which the next is on its way.
OFA_INLINE void update_stage(const FastAdamW& adamw, const StageState& stage, const float* sums,
                             uint32_t (&words)[LINE_COLUMNS / 4]) {
    StateQuarter next = stage.load(0);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        StateQuarter now = next;
        if (q < 3) next = stage.load(q + 1);
        update_quarter(adamw, stage.place, q, now, sums, words);
        stage.store(q, now);
    }
}

// What a thread holds of a block of 16 x 16 is its 16 bytes of stream order. `first` is the stage's first column in the tile.
OFA_INLINE void store_streamed(const Slot& slot, const Worker& worker, int first,
                               const uint32_t (&words)[LINE_COLUMNS / 4]) {
    const NearOperand& to = slot.operands[STREAMED_VERSION];
    const Task& task = slot.task;
    const int row = task.tile[0] + worker.row(), column = task.tile[2] + first;
    bf16* const at = reinterpret_cast<bf16*>(to.base) + (int64_t(row / 16) * (to.cols / 16) + column / 16) * 256 +
                     worker.lane * 8;
#pragma unroll
    for (int i = 0; i < LINE_COLUMNS / 16; ++i)
        if (row < task.tile[0] + task.tile[1] && first + 16 * i < task.tile[3])
            store_words(at + 256 * i, make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]));
}

OFA_INLINE FastAdamW adamw_of(Block& block, const Task& task) {
    FastAdamW adamw = block.kept<FastAdamW>();
    if ((task.flags & ADAMW_DECAY) == 0) adamw.decay = 0.0f;
    return adamw;
}

// A stage's part of the next version, in both orders.
OFA_INLINE void store_version(Pipeline& pipeline, int stage_of_tile, const uint32_t (&words)[LINE_COLUMNS / 4]) {
    const Slot& slot = current_slot(pipeline);
    const int first = stage_of_tile * LINE_COLUMNS;
    const Worker worker;
    store_streamed(slot, worker, first, words);
    const Position<BUFFERS> at{places_of_warp(pipeline).buffers};
    if (stage_of_tile % 2 == 0) begin_chunk(pipeline, worker, at);
    stage_pairs<LINE_COLUMNS / 16>(pipeline, worker, at, stage_of_tile % 2 * 2, [&](int i) { return words[i]; });
    if (stage_of_tile % 2 == 1 || first + LINE_COLUMNS >= slot.task.tile[3]) end_chunk(pipeline, worker, at);
}

// By a consumer, after its sums.
OFA_INLINE void update_tile(Pipeline& pipeline, float (&sums)[128]) {
    for_each_part<LINE_COLUMNS / 2, 2>(pipeline, sums, [&](int part, const float* own) {
        if (part * LINE_COLUMNS >= current_slot(pipeline).task.tile[3]) return;
        uint32_t words[LINE_COLUMNS / 4];
        change_lines(pipeline, [&](const Worker& worker, uint32_t stage) {
            update_stage(adamw_of(pipeline.block, current_slot(pipeline).task),
                         StageState(pipeline, stage, worker.consumer, LinePlace(worker)), own, words);
        });
        store_version(pipeline, part, words);
    });
}

}  // namespace ofa
