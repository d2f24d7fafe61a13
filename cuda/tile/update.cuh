// The second half of a weight gradient's task on Hopper: AdamW on the tile's master, m and v, then the next version in both
// orders. The gradient stays in the consumers' registers. Behind the factors the loader brings the state, 32 columns of
// master, m and v a stage; the consumers update it in place, and the storers send it back.
#pragma once

#include "tile/adamw.cuh"
#include "tile/product.cuh"
#include "tile/staging.cuh"

namespace ofa {

constexpr int STATES = 3, STATE_COLUMNS = 32, STATE_BYTES = 64 * STATE_COLUMNS * 4;
constexpr int FIRST_STATE = 2, NEXT_VERSION = 5, STREAMED_VERSION = 6;  // operands
static_assert(STATES * CONSUMERS * STATE_BYTES == A_BYTES + B_BYTES);

// Where a stage has a consumer's 64 rows of master, m or v (0, 1, 2).
OFA_INLINE uint8_t* state_at(Pipeline& pipeline, uint32_t stage, int state, int consumer) {
    uint8_t* const first = state == 0 ? pipeline.a[stage] : pipeline.b[stage] + (state - 1) * CONSUMERS * STATE_BYTES;
    return first + consumer * STATE_BYTES;
}

OFA_INLINE int state_stages(const Task& task) { return (task.tile[3] + STATE_COLUMNS - 1) / STATE_COLUMNS; }

// By the loader.
OFA_INLINE void load_state(Pipeline& pipeline, const Slot& slot, Position<STAGES>& at) {
    const Task& task = slot.task;
    const int stages = state_stages(task);
    for (int i = 0; i < stages; ++i, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.empty[stage], at.parity() ^ 1);
        if (i + 1 == stages) sm90::arrive(&pipeline.claim_next);
        sm90::Barrier* const full = &pipeline.full[stage];
        sm90::arrive_expecting(full, A_BYTES + B_BYTES);
        for (int state = 0; state < STATES; ++state) {
            const sm90::TensorMap* const map = tensor_map(slot.ctx, task, FIRST_STATE + state, MAP_STATE);
            for (int consumer = 0; consumer < CONSUMERS; ++consumer)
                sm90::load_2d(state_at(pipeline, stage, state, consumer), map, task.tile[2] + i * STATE_COLUMNS,
                              task.tile[0] + 64 * consumer, full);
        }
    }
}

// By a storer. A stage is given back when the copy engine has read it.
OFA_INLINE void store_state(Pipeline& pipeline, const Slot& slot, int consumer, Position<STAGES>& updates,
                            Position<BUFFERS>& buffers) {
    const Task& task = slot.task;
    const int stages = state_stages(task);
    for (int i = 0; i < stages; ++i, updates.advance()) {
        wait_for(&pipeline.updated[consumer][updates.stage()], updates.parity());
        const uint32_t stage = (pipeline.first_state[consumer] + i) % STAGES;
        for (int state = 0; state < STATES; ++state)
            sm90::store_2d(tensor_map(slot.ctx, task, FIRST_STATE + state, MAP_STATE), task.tile[2] + i * STATE_COLUMNS,
                           task.tile[0] + 64 * consumer, state_at(pipeline, stage, state, consumer));
        sm90::commit_stores();
        sm90::wait_until_read<0>();
        sm90::arrive(&pipeline.empty[stage], CONSUMER_WARPS / CONSUMERS);
        const bool whole_chunk = i % 2 == 1 || i + 1 == stages;
        if (whole_chunk)
            send_chunk(pipeline, slot, consumer, NEXT_VERSION, task.tile[2] + i / 2 * CHUNK_COLUMNS, buffers);
    }
}

// Before stages become near memory: the storers may still read the state that the task before has updated.
OFA_INLINE void wait_for_empty_stages(Pipeline& pipeline) {
    const uint32_t used = places_of_warp(pipeline).stages;
    for (uint32_t i = 1; i <= STAGES && i <= used; ++i) {
        const Position<STAGES> at{used - i};
        wait_for(&pipeline.empty[at.stage()], at.parity());
    }
}

// Where a thread finds its two columns of a line of state, which the copy engine has exchanged in pieces of 16 bytes by the
// line's number modulo 8. Of the four groups of 8 columns, odd lines begin with the third: so the lines that a half-warp
// works on lie in different banks.
struct StatePlace {
    uint32_t odd, offset;

    OFA_INLINE explicit StatePlace(const ConsumerPlace& place) {
        const int line = place.lane / 4, pair = place.lane % 4;
        odd = line % 2;
        offset = (16 * place.warp + line) * 128 + (((pair / 2) ^ line ^ (4 * odd)) * 16) + pair % 2 * 8;
    }
    // Of the thread's lines 0 and 1, 8 apart; its i-th group of columns. An address in shared memory.
    OFA_INLINE uint32_t at(uint32_t state, int half, int i) const { return state + (offset ^ (i * 32)) + half * 1024; }
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

// A quarter of what a thread has of a stage: two groups of columns of a line.
struct StateQuarter {
    float2 p[2], m[2], v[2];
};

// A consumer's rows of master, m and v in a stage. Quarter q: groups q / 2 and q / 2 + 2 of line q % 2.
struct StageState {
    const StatePlace place;
    uint32_t master, m, v;  // addresses in shared memory

    OFA_INLINE StageState(Pipeline& pipeline, uint32_t stage, int consumer, const StatePlace& place)
        : place(place), master(sm90::shared_address(state_at(pipeline, stage, 0, consumer))),
          m(sm90::shared_address(state_at(pipeline, stage, 1, consumer))),
          v(sm90::shared_address(state_at(pipeline, stage, 2, consumer))) {}

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
OFA_INLINE void update_quarter(const AdamW& adamw, const StatePlace& place, int q, StateQuarter& state, const float* sums,
                               uint32_t (&words)[STATE_COLUMNS / 4]) {
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
OFA_INLINE void update_stage(const AdamW& adamw, const StageState& stage, const float* sums,
                             uint32_t (&words)[STATE_COLUMNS / 4]) {
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
OFA_INLINE void store_streamed(const TaskContext& ctx, const Task& task, const ConsumerPlace& place, int first,
                               const uint32_t (&words)[STATE_COLUMNS / 4]) {
    const Matrix<bf16> to = ctx.operand<bf16>(STREAMED_VERSION);
    const int row = place.row - place.lane / 4, column = task.tile[2] + first;
    bf16* const at = to.data + (int64_t(row / 16) * (to.cols / 16) + column / 16) * 256 + place.lane * 8;
#pragma unroll
    for (int i = 0; i < STATE_COLUMNS / 16; ++i)
        if (row < task.tile[0] + task.tile[1] && first + 16 * i < task.tile[3])
            store_words(at + 256 * i, make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]));
}

OFA_INLINE AdamW adamw_of(Block& block, const Task& task) {
    AdamW adamw = block.kept<AdamW>();
    if ((task.flags & ADAMW_DECAY) == 0) adamw.decay = 0.0f;
    return adamw;
}

// One stage of it.
OFA_INLINE void update_columns(Pipeline& pipeline, int stage_of_tile, const float* sums) {
    volatile Places& places = places_of_warp(pipeline);
    const Slot& slot = current_slot(pipeline);
    const Task& task = slot.task;
    const Position<STAGES> at{places.stages}, updates{places.updates};
    wait_for(&pipeline.full[at.stage()], at.parity());
    const int thread = fresh_thread(), consumer = consumer_of(thread);
    const ConsumerPlace place(task, consumer, thread % WARPGROUP / 32, thread % 32);
    uint32_t words[STATE_COLUMNS / 4];
    update_stage(adamw_of(pipeline.block, task), StageState(pipeline, at.stage(), consumer, StatePlace(place)), sums, words);
    sm90::fence_proxy_shared();
    __syncwarp();
    if (place.lane == 0) sm90::arrive(&pipeline.updated[consumer][updates.stage()]);
    const int first = stage_of_tile * STATE_COLUMNS;
    store_streamed(slot.ctx, task, place, first, words);
    Position<BUFFERS> buffers{places.buffers};
    if (stage_of_tile % 2 == 0) begin_chunk(pipeline, consumer, buffers);
    stage_pairs<STATE_COLUMNS / 16>(pipeline, consumer, place, buffers, stage_of_tile % 2 * 2, [&](int i) { return words[i]; });
    if (stage_of_tile % 2 == 1 || first + STATE_COLUMNS >= task.tile[3]) end_chunk(pipeline, consumer, place, buffers);
    places.stages = at.count + 1;
    places.updates = updates.count + 1;
    places.buffers = buffers.count;
}

// By a consumer, after its sums. Beside these nothing stays in registers from stage to stage, not even the places in the
// rings: it would be spilled.
OFA_INLINE void update_tile(Pipeline& pipeline, Position<STAGES>& stages, Position<BUFFERS>& buffers,
                            const float (&sums)[128]) {
    places_of_warp(pipeline).stages = stages.count;
    if (fresh_thread() % 32 == 0) pipeline.first_state[consumer_of(fresh_thread())] = stages.count;
#pragma unroll
    for (int i = 0; i < TILE_COLUMNS / STATE_COLUMNS; ++i)
        if (i * STATE_COLUMNS < current_slot(pipeline).task.tile[3]) update_columns(pipeline, i, sums + 16 * i);
    stages.count = places_of_warp(pipeline).stages;
    buffers.count = places_of_warp(pipeline).buffers;
}

}  // namespace ofa
