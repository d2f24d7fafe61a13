// The tasks between the one that opens a token and the one that samples it, as one slot: the claimer turns a block's own
// tasks into steps, the loader sends the weights of the steps through the stages of the ring, as far ahead as there are
// empty ones, and the consumers (ops/sm90/token.cuh) do what they say.
#pragma once

#include "sched/seats.h"
#include "tile/pipeline.cuh"

namespace ofa {

// --- the claimer: a warp ---------------------------------------------------------------------------------------------

struct TaskWords {
    uint4 at[sizeof(Task) / sizeof(uint4)];

    OFA_INLINE explicit TaskWords(const Task& task) {
        static_assert(sizeof(Task) == sizeof at && offsetof(Task, operands) == 24 && offsetof(Task, lane) == 38);
#pragma unroll
        for (int i = 0; i < 4; ++i) at[i] = load_words(reinterpret_cast<const uint4*>(&task) + i);
    }
    OFA_INLINE uint32_t opcode() const { return at[0].x & 0xFFFF; }
    OFA_INLINE uint32_t waits() const { return at[0].x >> 16 & 0xFF; }
    OFA_INLINE uint32_t signal() const { return at[0].y; }
    OFA_INLINE uint32_t row0() const { return at[0].z; }
    OFA_INLINE uint32_t rows() const { return at[0].w; }
    OFA_INLINE uint32_t col0() const { return at[1].x; }
    OFA_INLINE uint32_t cols() const { return at[1].y; }
    OFA_INLINE uint32_t lane() const { return at[2].y >> 16; }
    OFA_INLINE uint32_t two_operands(int i) const { return i == 0 ? at[1].z : i == 1 ? at[1].w : i == 2 ? at[2].x : at[2].y; }
};

OFA_INLINE uint64_t from_lane(uint64_t word, int lane) { return __shfl_sync(0xFFFFFFFFu, word, lane); }
OFA_INLINE uint32_t from_first_lane(uint32_t word) { return __shfl_sync(0xFFFFFFFFu, word, 0); }

// The block's first task from `from` on; n_tasks where there is none.
OFA_INLINE uint32_t find_owned(const Program& program, uint32_t from, const Place& place, uint32_t lane) {
    for (; from < program.n_tasks; from += 32) {
        const uint32_t at = from + lane;
        const bool own = at < program.n_tasks && program.tasks[at].lane % place.blocks == place.rank;
        const uint32_t found = __ballot_sync(0xFFFFFFFFu, own);
        if (found != 0) return from + uint32_t(__ffs(int(found))) - 1;
    }
    return program.n_tasks;
}

OFA_INLINE bool goes_together(uint32_t opcode) {
    return opcode == OPCODE_STREAM_NORM_MATMUL_GELU || opcode == OPCODE_STREAM_NORM_MATMUL;
}
// Which operand is the weight; 7 (none) where there is none.
OFA_INLINE int weight_operand(uint32_t opcode) {
    return opcode == OPCODE_STREAM_ATTENTION ? 7 : opcode == OPCODE_STREAM_MATMUL_RESIDUAL ? 1 : 2;
}

// Sends for the unit's two runs of columns of the rows that a pass will read of a cache: they come from memory, and steps
// are claimed well before their turn. `unit` is where the first run begins in row 0.
OFA_INLINE void prefetch_cache(const Launch& launch, uint64_t unit, uint32_t lane) {
    const ServeState& serve = *launch.serve;
    const uint64_t pitch = launch.model.width * sizeof(bf16);
    for (uint32_t row = 0; row < serve.n_rows; ++row) {
        if (row + 1 < serve.n_rows && serve.rows[row + 1].stream == serve.rows[row].stream) continue;
        const uint64_t first = unit + uint64_t(serve.rows[row].stream) * launch.model.context * pitch;
        for (uint32_t r = lane; r < serve.rows[row].position; r += 32) {
            sm90::prefetch_line(reinterpret_cast<const void*>(first + r * pitch));
            sm90::prefetch_line(reinterpret_cast<const void*>(first + r * pitch + STREAM_HEAD / 2 * sizeof(bf16)));
        }
    }
}

// The steps of the token whose first own task is `ctx`'s, up to the first task that waits for a counter. The first
// lanes look at the tasks that a step may consist of, the seven first ones at its operands.
OFA_INLINE void claim_steps(Pipeline& pipeline, const TaskContext& ctx, Place& place, Position<STEP_SLOTS>& steps) {
    const Program& program = ctx.launch->programs[PROGRAM_DECODE];
    const uint32_t lane = threadIdx.x % 32;
    uint32_t task = uint32_t(ctx.task - program.tasks);
    for (bool more = true; more; steps.advance()) {
        const uint32_t slot = steps.stage();
        Step& step = pipeline.token().steps[slot];
        const uint32_t mine = task + (lane < MOST_PAIRS ? lane : 0) * place.blocks;
        const TaskWords words(program.tasks[mine < program.n_tasks ? mine : program.n_tasks - 1]);
        const uint32_t opcode = from_first_lane(words.opcode());
        more = task < program.n_tasks && from_first_lane(words.waits()) == 0;
        uint32_t next = task;
        uint64_t unit_at = 0;  // in the lanes of the caches, where the step looks at them
        if (more) {
            const uint32_t first_lane = from_first_lane(words.lane()), signal = from_first_lane(words.signal());
            uint32_t operands[4];
            bool same = mine < program.n_tasks && words.opcode() == opcode && words.waits() == 0 &&
                        words.signal() == signal && words.lane() == first_lane + lane * place.blocks &&
                        (lane == 0 || (lane < MOST_PAIRS && goes_together(opcode)));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                operands[i] = from_first_lane(words.two_operands(i));
                same = same && (i < 3 ? words.two_operands(i) == operands[i]
                                      : ((words.two_operands(i) ^ operands[i]) & 0xFFFF) == 0);
            }
            const uint32_t together = __ballot_sync(0xFFFFFFFFu, same);
            const uint32_t tasks = uint32_t(__ffs(int(~together))) - 1;
            const uint32_t both = lane < 2 ? operands[0] : lane < 4 ? operands[1] : lane < 6 ? operands[2] : operands[3];
            const uint32_t name = lane < MAX_OPERANDS ? both >> (lane % 2 * 16) & 0xFFFF : NONE_U16;
            const Operand& o = ctx.launch->operands[name == NONE_U16 ? 0 : name];
            const uint64_t base = uint64_t(o.base) + ctx.copy_of(o) * o.copy_bytes;
            const uint32_t tag = uint32_t(ctx.iteration) * o.generations + o.generation + 1;
            const int weight = weight_operand(opcode);
            const uint32_t rows = __shfl_sync(0xFFFFFFFFu, o.rows, weight);
            const uint32_t across = __shfl_sync(0xFFFFFFFFu, o.cols, weight) / WEIGHT_BLOCK;
            next = find_owned(program, task + (tasks - 1) * place.blocks + 1, place, lane);
            if (lane == 0) wait_for_slot(&pipeline.step_ring.empty[slot], steps.parity() ^ 1);
            __syncwarp();
            if (lane < MAX_OPERANDS && name != NONE_U16) {
                step.name[lane] = uint16_t(name);
                step.tag[lane] = tag;
                step.base[lane] = base;
            }
            // Tile of a unit: part, parts, first column of the head, its columns.
            const bool unit = opcode == OPCODE_STREAM_QKV || opcode == OPCODE_STREAM_ATTENTION;
            const uint32_t row = unit ? words.col0() + words.row0() * (words.cols() / (2 * words.rows())) : words.col0();
            const uint32_t first_row = from_first_lane(row);
            const uint32_t single = __ballot_sync(0xFFFFFFFFu, !unit && words.cols() <= WEIGHT_BLOCK);
            if (lane < MOST_PAIRS) step.row[lane] = unit ? first_row + lane * (rows / 3) : row;
            if (opcode == OPCODE_STREAM_QKV) unit_at = base + first_row * sizeof(bf16);
            if (lane == 0) {
                step.opcode = uint16_t(opcode);
                step.pairs = uint8_t(weight == 7 ? 0 : unit ? 3 : tasks);
                step.chunks = uint8_t(chunks_of(across));
                step.blocks = uint16_t(weight == 7 ? 0 : across / chunks_of(across));
                step.apart = uint16_t(unit ? words.cols() / 2 : WEIGHT_BLOCK);
                step.task = task;
                step.tasks = tasks;
                step.single = single;
                step.signal = signal;
            }
        } else if (lane == 0) {
            wait_for_slot(&pipeline.step_ring.empty[slot], steps.parity() ^ 1);
            step.opcode = STEP_END;
        }
        __syncwarp();
        if (lane == 0) sm90::arrive(&pipeline.step_ring.full[slot]);
        if (unit_at != 0)
            for (int cache = 3; cache <= 4; ++cache) prefetch_cache(*ctx.launch, from_lane(unit_at, cache), lane);
        task = next;
    }
    if (lane == 0) place.task = task;
    __syncwarp();
}

// --- the loader ------------------------------------------------------------------------------------------------------

OFA_INLINE void load_weights(Pipeline& pipeline, const Step& step, Position<STAGES>& stages) {
    const uint32_t chunks = step.chunks, bytes = step.blocks * WEIGHT_BLOCK_BYTES, across = chunks * step.blocks;
    const uint8_t* const weight = step.at<const uint8_t>(weight_operand(step.opcode));
    for (uint32_t pair = 0; pair < step.pairs; ++pair) {
        const uint8_t* const rows = weight + uint64_t(step.row[pair] / WEIGHT_BLOCK * across) * WEIGHT_BLOCK_BYTES;
        const bool both = (step.single >> pair & 1) == 0;
        for (uint32_t chunk = 0; chunk < chunks; ++chunk, stages.advance()) {
            const uint32_t stage = stages.stage();
            const uint8_t* const from = rows + chunk * bytes;
            uint8_t* const to = pipeline.a[0] + stage * STREAM_STAGE_BYTES;
            sm90::Barrier* const full = &pipeline.full[stage];
            wait_for(&pipeline.empty[stage], stages.parity() ^ 1);
            sm90::arrive_expecting(full, both ? 2 * bytes : bytes);
            sm90::load_bulk(to, from, bytes, full);
            if (both)
                sm90::load_bulk(to + bytes, from + step.apart / WEIGHT_BLOCK * across * WEIGHT_BLOCK_BYTES, bytes, full);
        }
    }
}

// The fence covers all weights of the token: their version was pinned before it was opened.
OFA_INLINE void load_steps(Pipeline& pipeline, Position<STEP_SLOTS>& steps, Position<STAGES>& stages) {
    sm90::fence_proxy_global();
    for (bool more = true; more; steps.advance()) {
        const uint32_t at = steps.stage();
        wait_for_slot(&pipeline.step_ring.full[at], steps.parity());
        const Step& step = pipeline.token().steps[at];
        more = step.opcode != STEP_END;
        if (more) load_weights(pipeline, step, stages);
        sm90::arrive(&pipeline.step_ring.empty[at]);
    }
}

}  // namespace ofa
