// What a task type's body sees: the task, its operands for the right weight version, and the step's tokens.
#pragma once

#include "ofa_abi.h"
#include "platform/platform.h"
#include "sched/schedule.h"

namespace ofa {

// Row-major; element (r, c) is data[r * pitch + c].
template <class T>
struct Matrix {
    T* data;
    int64_t pitch;
    int64_t rows;
    int64_t cols;

    OFA_INLINE T* row(int64_t r) const { return data + r * pitch; }
};

// The sequences of a step or of a held-out batch: windows of a text. Row r is position r mod context of sequence
// r / context, divided in 32 bits: tiles have no more rows.
struct Sequences {
    const int64_t* windows;  // first token of each; -1 for an empty row of the last held-out batch
    const int32_t* text;
    int64_t length;  // of the text
    uint32_t batch;  // sequences
    uint32_t context;

    // Input token of row r; 0 in an empty row.
    OFA_INLINE int32_t token(int64_t r) const {
        const int64_t at = place(r);
        return at >= 0 && at < length ? text[at] : 0;
    }

    // Token that row r has to predict, or -1 where it does not count.
    OFA_INLINE int32_t target(int64_t r) const {
        const int64_t at = place(r);
        return at >= 0 && at + 1 < length ? text[at + 1] : -1;
    }

    // Rows of sequence b that have a target.
    OFA_INLINE int64_t counted_in(uint32_t b) const {
        const int64_t left = windows[b] < 0 ? 0 : length - 1 - windows[b];
        return left < 0 ? 0 : left < context ? left : context;
    }

    // Rows of the whole batch that have a target: the divisor of the mean loss.
    OFA_INLINE int64_t counted_rows() const {
        int64_t count = 0;
        for (uint32_t b = 0; b < batch; ++b) count += counted_in(b);
        return count;
    }

private:
    OFA_INLINE int64_t place(int64_t r) const {
        const int64_t first = windows[uint32_t(r) / context];
        return first < 0 ? -1 : first + uint32_t(r) % context;
    }
};

struct TaskContext {
    const Launch* launch;
    const Task* task;
    uint32_t program;    // PROGRAM_*
    uint32_t sm;
    uint64_t iteration;  // step, sweep batch, token or tic, counted from 0
    uint64_t version;    // of the weights that are read; weights are written as version + 1
    uint64_t ticket;     // of the role's queue
    bool ahead;          // claimed while the task before it still runs: its waits are not yet waiting of the SM
    uint64_t claimed_ns, ready_ns;  // when it was claimed and its waits were over, where that is asked for
    uint64_t* waits_ns;  // all waiting of the SM, in the block's memory

    OFA_INLINE int64_t row0() const { return task->tile[0]; }
    OFA_INLINE int64_t rows() const { return task->tile[1]; }
    OFA_INLINE int64_t col0() const { return task->tile[2]; }
    OFA_INLINE int64_t cols() const { return task->tile[3]; }

    // Whether optional operand i was given.
    OFA_INLINE bool present(int i) const { return task->operands[i] != NONE_U16; }

    // Operand i as ops.py numbers them: the whole matrix, not the tile.
    template <class T>
    OFA_INLINE Matrix<T> operand(int i) const {
        const Operand& o = launch->operands[task->operands[i]];
        return {reinterpret_cast<T*>(o.base + copy_of(o) * o.copy_bytes), o.pitch, o.rows, o.cols};
    }

    // The copy of an operand that belongs to this task's version: (version + rotation) mod copies, by divisions of 32
    // bits. One of 64 is a call on a GPU, in the midst of an epilogue that has no register to spare.
    OFA_INLINE uint64_t copy_of(const Operand& o) const {
        const uint32_t copies = o.copies;
        if (copies == 1) return 0;
        const uint64_t wanted = version + o.rotation;
        const uint32_t carry = 0xFFFFFFFFu % copies + 1;  // 2^32 mod copies
        return (uint32_t(wanted >> 32) % copies * carry + uint32_t(wanted) % copies) % copies;
    }

    // Where this step or sweep batch stands in the arrays that have a row for each one of this run.
    OFA_INLINE uint64_t row_of_iteration() const {
        const Schedule& s = launch->schedule;
        return iteration - (program == PROGRAM_TRAIN ? s.first_step : s.first_batch);
    }

    OFA_INLINE Sequences sequences() const {
        const Data& data = launch->data;
        const Model& model = launch->model;
        const bool train = program == PROGRAM_TRAIN;
        const int64_t place = train ? int64_t(row_of_iteration()) : int64_t(sweep_batch(launch->schedule, iteration));
        return {(train ? data.train_windows : data.valid_windows) + place * model.batch,
                train ? data.train_tokens : data.valid_tokens, int64_t(train ? data.n_train : data.n_valid),
                model.batch, model.context};
    }
    OFA_INLINE int32_t token(int64_t r) const { return sequences().token(r); }
    OFA_INLINE int32_t target(int64_t r) const { return sequences().target(r); }
    OFA_INLINE int64_t counted_rows() const { return sequences().counted_rows(); }
};

}  // namespace ofa
