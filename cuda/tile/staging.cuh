// Tiles of sums on Hopper on their way to memory. A bf16 output leaves through the copy engine, 64 columns at a time: the
// consumers stage a chunk, a storer warp sends it.
#pragma once

#include "tile/epilogue.cuh"
#include "tile/product.cuh"

namespace ofa {

constexpr int CHUNKS = TILE_COLUMNS / CHUNK_COLUMNS, SUMS_PER_CHUNK = CHUNK_COLUMNS / 2;

// Which thread of the consumers this is. Like its places in the rings it is looked up where it is needed: kept beside the
// sums it would be spilled.
struct Worker {
    int consumer, warp, lane;  // warp in its warpgroup

    OFA_INLINE Worker() {
        const int thread = fresh_thread();
        consumer = consumer_of(thread);
        warp = thread % WARPGROUP / 32;
        lane = thread % 32;
    }
    OFA_INLINE int row() const { return 64 * consumer + 16 * warp; }  // of the tile: its warp's first
};

// use(part, its sums) for one part of the columns after the other, of PART sums each. Of `TOGETHER` parts the code is there,
// for all others it is run again, when their sums have moved up to where the first ones were: straight on it would be too
// long for the instruction caches, and each tile would wait for it. In the end no sums are left.
template <int PART, int TOGETHER, class Use>
OFA_INLINE void for_each_part(Pipeline& pipeline, float (&sums)[128], Use use) {
    constexpr int MOVED = PART * TOGETHER;
#pragma unroll 1
    for (int part = 0; part < 128 / PART; part += TOGETHER) {
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) use(part + i, sums + PART * i);
        // A zero that nobody knows before: else the others would move up at once, and those in use be copied, for which there
        // are no registers.
        if (*static_cast<volatile uint32_t*>(&pipeline.zero) != 0) __trap();
#pragma unroll
        for (int i = 0; i + MOVED < 128; ++i) sums[i] = sums[i + MOVED];
    }
}

// Where a thread's sums belong in the output: 16 rows for each of a consumer's warps, all columns.
OFA_INLINE TilePlace place_of_sums(const Worker& worker, const Task& task) {
    return TilePlace(task.tile[0] + worker.row(), task.tile[2], worker.lane);
}

// A chunk is staged in three steps: its buffer is free; pairs of 16 columns are written, of which `word(i)` is the thread's
// i-th pair of neighbours; it is complete. The swizzle is that of the tensor map.
OFA_INLINE void begin_chunk(Pipeline& pipeline, const Worker& worker, const Position<BUFFERS>& at) {
    wait_for(&pipeline.stored[worker.consumer][at.stage()], at.parity() ^ 1);
}

// Of a thread's 16 rows in a chunk: where it reads or writes pair `pair` of 16 columns. An address in shared memory.
OFA_INLINE uint32_t pair_at(uint32_t chunk, const Worker& worker, int pair) {
    const int row = 16 * worker.warp + worker.lane % 16, half = worker.lane / 16;
    return chunk + row * 128 + ((2 * pair + half) ^ (row % 8)) * 16;
}

template <int PAIRS, class Word>
OFA_INLINE void stage_pairs(Pipeline& pipeline, const Worker& worker, const Position<BUFFERS>& at, int first, Word word) {
    const uint32_t chunk = sm90::shared_address(pipeline.staging[worker.consumer][at.stage()]);
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         pair_at(chunk, worker, first + pair)),
                     "r"(word(4 * pair)), "r"(word(4 * pair + 1)), "r"(word(4 * pair + 2)), "r"(word(4 * pair + 3))
                     : "memory");
}

OFA_INLINE void end_chunk(Pipeline& pipeline, const Worker& worker, const Position<BUFFERS>& at) {
    sm90::fence_proxy_shared();
    __syncwarp();
    if (worker.lane == 0) sm90::arrive(&pipeline.staged[worker.consumer][at.stage()]);
    places_of_warp(pipeline).buffers = at.count + 1;
}

// Stages 64 columns, of which `value(i)` is the thread's i-th of 32.
template <class Value>
OFA_INLINE void stage_chunk(Pipeline& pipeline, Value value) {
    const Worker worker;
    const Position<BUFFERS> at{places_of_warp(pipeline).buffers};
    begin_chunk(pipeline, worker, at);
    stage_pairs<CHUNK_COLUMNS / 16>(pipeline, worker, at, 0, [&](int i) { return pack(value(2 * i), value(2 * i + 1)); });
    end_chunk(pipeline, worker, at);
}

// By a storer: a staged chunk, to the place of its columns in an output.
OFA_INLINE void send_chunk(Pipeline& pipeline, const Slot& slot, int consumer, int operand, int column,
                           Position<BUFFERS>& at) {
    const uint32_t buffer = at.stage();
    wait_for(&pipeline.staged[consumer][buffer], at.parity());
    sm90::store_2d(tensor_map(slot, operand, MAP_OUT), column, slot.task.tile[0] + 64 * consumer,
                   pipeline.staging[consumer][buffer]);
    sm90::commit_stores();
    sm90::wait_until_read<0>();
    sm90::arrive(&pipeline.stored[consumer][buffer]);
    at.advance();
}

OFA_INLINE void store_tile(Pipeline& pipeline, float (&sums)[128]) {
    for_each_part<SUMS_PER_CHUNK, 2>(pipeline, sums, [&](int, const float* own) {
        stage_chunk(pipeline, [&](int i) { return own[i]; });
    });
}

OFA_INLINE void store_gelu(Pipeline& pipeline, float (&sums)[128]) {
    for_each_part<SUMS_PER_CHUNK, 2>(pipeline, sums, [&](int, const float* own) {
        stage_chunk(pipeline, [&](int i) { return own[i]; });
        stage_chunk(pipeline, [&](int i) { return fast_gelu(own[i]); });
    });
}

// By the loader: the inputs of GELU at the tile's places, a chunk a stage.
OFA_INLINE void load_gelu_inputs(Pipeline& pipeline, const Slot& slot, Position<STAGES>& at) {
    const Task& task = slot.task;
    const sm90::TensorMap* const map = tensor_map(slot, 2, MAP_OUT);
    for (int column = 0; column < task.tile[3]; column += CHUNK_COLUMNS, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.empty[stage], at.parity() ^ 1);
        if (column == 0) sm90::arrive(&pipeline.claim_next);
        sm90::arrive_expecting(&pipeline.full[stage], CONSUMERS * CHUNK_BYTES);
        for (int consumer = 0; consumer < CONSUMERS; ++consumer)
            sm90::load_2d(pipeline.a[stage] + consumer * CHUNK_BYTES, map, task.tile[2] + column,
                          task.tile[0] + 64 * consumer, &pipeline.full[stage]);
    }
}

// The next of them: a thread's 16 words of a chunk, as stage_pairs would write them.
OFA_INLINE void take_gelu_inputs(Pipeline& pipeline, uint32_t (&words)[SUMS_PER_CHUNK / 2]) {
    const Worker worker;
    const Position<STAGES> at{places_of_warp(pipeline).stages};
    wait_for(&pipeline.full[at.stage()], at.parity());
    const uint32_t chunk = sm90::shared_address(pipeline.a[at.stage()] + worker.consumer * CHUNK_BYTES);
#pragma unroll
    for (int pair = 0; pair < CHUNK_COLUMNS / 16; ++pair)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[4 * pair]), "=r"(words[4 * pair + 1]), "=r"(words[4 * pair + 2]), "=r"(words[4 * pair + 3])
                     : "r"(pair_at(chunk, worker, pair))
                     : "memory");
    __syncwarp();
    if (worker.lane == 0) sm90::arrive(&pipeline.empty[at.stage()]);
    places_of_warp(pipeline).stages = at.count + 1;
}

OFA_INLINE void store_through_gelu(Pipeline& pipeline, float (&sums)[128]) {
    for_each_part<SUMS_PER_CHUNK, 2>(pipeline, sums, [&](int part, const float* own) {
        uint32_t inputs[SUMS_PER_CHUNK / 2] = {};
        if (part * CHUNK_COLUMNS < current_slot(pipeline).task.tile[3]) take_gelu_inputs(pipeline, inputs);
        stage_chunk(pipeline, [&](int i) {
            const float input = i % 2 == 0 ? low_of(inputs[i / 2]) : high_of(inputs[i / 2]);
            return own[i] * fast_gelu_derivative(input);
        });
    });
}

// The tile, and of each of its rows the statistics of the outputs as they are stored.
OFA_INLINE void store_with_statistics(Pipeline& pipeline, float (&sums)[128]) {
    RowStatistics rows[2];
    for_each_part<SUMS_PER_CHUNK, 2>(pipeline, sums, [&](int part, float* own) {
        hide_right_of<SUMS_PER_CHUNK>(own, int(current_slot(pipeline).task.tile[3]) - part * CHUNK_COLUMNS);
        stage_chunk(pipeline, [&](int i) { return own[i]; });
#pragma unroll
        for (int half = 0; half < 2; ++half) rows[half].add<SUMS_PER_CHUNK>(own, half);
    });
    const Slot& slot = current_slot(pipeline);
    const TilePlace place = place_of_sums(Worker(), slot.task);
    const NearOperand& o = slot.operands[3];
    float* const statistics = reinterpret_cast<float*>(o.base);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 both = rows[half].of_four_threads();
        const int row = place.row + 8 * half;
        if (place.lane % 4 == 0 && row < int(o.rows)) store_statistics(statistics, o.pitch, slot.task, row, both);
    }
}

}  // namespace ofa
