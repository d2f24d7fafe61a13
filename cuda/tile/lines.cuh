// Matrices of f4 that follow a product's factors through the ring, 32 columns of each a stage: the consumers change them in
// place, and the storers send them to where they belong. Master, m and v of a weight (tile/update.cuh), or the skip of a
// residual product (tile/residual.cuh).
#pragma once

#include "tile/product.cuh"
#include "tile/staging.cuh"

namespace ofa {

constexpr int LINE_COLUMNS = 32, LINES_BYTES = 64 * LINE_COLUMNS * 4;  // of a consumer's 64 lines
constexpr int MOST_LINED = 3;                                          // matrices
static_assert(MOST_LINED * CONSUMERS * LINES_BYTES == A_BYTES + B_BYTES);

// How many matrices, which are operands from 2 on; and the first operand that they go to.
OFA_INLINE int lined_matrices(uint32_t opcode) {
    return opcode == OPCODE_MATMUL_DW_ADAMW ? 3 : opcode == OPCODE_MATMUL_RESIDUAL ? 1 : 0;
}
OFA_INLINE int first_lined_output(uint32_t opcode) { return opcode == OPCODE_MATMUL_RESIDUAL ? 3 : 2; }

OFA_INLINE int line_stages(const Task& task) { return (task.tile[3] + LINE_COLUMNS - 1) / LINE_COLUMNS; }

// Where a stage has a consumer's lines of matrix i.
OFA_INLINE uint8_t* lines_at(Pipeline& pipeline, uint32_t stage, int i, int consumer) {
    uint8_t* const first = i == 0 ? pipeline.a[stage] : pipeline.b[stage] + (i - 1) * CONSUMERS * LINES_BYTES;
    return first + consumer * LINES_BYTES;
}

// By the loader.
OFA_INLINE void load_lines(Pipeline& pipeline, const Slot& slot, Position<STAGES>& at) {
    const Task& task = slot.task;
    const int stages = line_stages(task), matrices = lined_matrices(task.opcode);
    for (int i = 0; i < stages; ++i, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.empty[stage], at.parity() ^ 1);
        if (is_time_to_claim(i, stages)) sm90::arrive(&pipeline.claim_next);
        sm90::Barrier* const full = &pipeline.full[stage];
        sm90::arrive_expecting(full, matrices * CONSUMERS * LINES_BYTES);
        for (int matrix = 0; matrix < matrices; ++matrix) {
            const sm90::TensorMap* const map = tensor_map(slot, 2 + matrix, MAP_LINES);
            for (int consumer = 0; consumer < CONSUMERS; ++consumer)
                sm90::load_2d(lines_at(pipeline, stage, matrix, consumer), map, task.tile[2] + i * LINE_COLUMNS,
                              task.tile[0] + 64 * consumer, full);
        }
    }
}

// Stage i of the tile, by a storer, when its consumer has changed it. It is given back when the copy engine has read it, so
// that at most STAGES of them are on their way.
OFA_INLINE void store_lines(Pipeline& pipeline, const Slot& slot, int consumer, int i, Position<STAGES>& changed) {
    const Task& task = slot.task;
    const int matrices = lined_matrices(task.opcode), output = first_lined_output(task.opcode);
    wait_for(&pipeline.changed[consumer][changed.stage()], changed.parity());
    const uint32_t stage = pipeline.changed_stage[consumer][changed.stage()];
    changed.advance();
    for (int matrix = 0; matrix < matrices; ++matrix)
        sm90::store_2d(tensor_map(slot, output + matrix, MAP_LINES), task.tile[2] + i * LINE_COLUMNS,
                       task.tile[0] + 64 * consumer, lines_at(pipeline, stage, matrix, consumer));
    sm90::commit_stores();
    sm90::wait_until_read<0>();
    sm90::arrive(&pipeline.empty[stage], CONSUMER_WARPS / CONSUMERS);
}

// Before stages become near memory: the storers may still read lines of the task before.
OFA_INLINE void wait_for_empty_stages(Pipeline& pipeline) {
    const uint32_t used = places_of_warp(pipeline).stages;
    for (uint32_t i = 1; i <= STAGES && i <= used; ++i) {
        const Position<STAGES> at{used - i};
        wait_for(&pipeline.empty[at.stage()], at.parity());
    }
}

// Where a thread finds its two columns of a line, which the copy engine has exchanged in pieces of 16 bytes by the line's
// number modulo 8. Of the four groups of 8 columns, odd lines begin with the third: so the lines that a half-warp works on
// lie in different banks.
struct LinePlace {
    uint32_t odd, offset;

    OFA_INLINE explicit LinePlace(const Worker& worker) {
        const int line = worker.lane / 4, pair = worker.lane % 4;
        odd = line % 2;
        offset = (16 * worker.warp + line) * 128 + (((pair / 2) ^ line ^ (4 * odd)) * 16) + pair % 2 * 8;
    }
    // Of the thread's lines 0 and 1, 8 apart; its i-th group of columns. An address in shared memory.
    OFA_INLINE uint32_t at(uint32_t lines, int half, int i) const { return lines + (offset ^ (i * 32)) + half * 1024; }
    // What an even line has, or what an odd one has. Opaque: else all sums would be chosen from before the first is needed,
    // and be twice in registers.
    OFA_INLINE float choose(float of_even, float of_odd) const {
        float chosen;
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %2, %1, p; }"
                     : "=f"(chosen) : "f"(of_even), "f"(of_odd), "r"(odd));
        return chosen;
    }
};

// Accesses are in the order of the program: the compiler would bring a whole stage into registers, and spill sums for it.
OFA_INLINE float2 load_near(uint32_t from) {
    float2 pair;
    asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(from) : "memory");
    return pair;
}
OFA_INLINE void store_near(uint32_t to, float2 pair) {
    asm volatile("st.volatile.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(pair.x), "f"(pair.y) : "memory");
}

// The next stage, by a consumer: `change(worker, stage)` changes its lines.
template <class Change>
OFA_INLINE void change_lines(Pipeline& pipeline, Change change) {
    volatile Places& places = places_of_warp(pipeline);
    const Position<STAGES> at{places.stages}, changed{places.changed};
    wait_for(&pipeline.full[at.stage()], at.parity());
    const Worker worker;
    change(worker, at.stage());
    sm90::fence_proxy_shared();
    __syncwarp();
    if (worker.lane == 0) {
        pipeline.changed_stage[worker.consumer][changed.stage()] = at.stage();
        sm90::arrive(&pipeline.changed[worker.consumer][changed.stage()]);
    }
    places.stages = at.count + 1;
    places.changed = changed.count + 1;
}

}  // namespace ofa
