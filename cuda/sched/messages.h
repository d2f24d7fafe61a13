// Messages: data that is its own flag. An element is a packet of a value and a tag, written and read as one word, so
// that a reader that sees the tag of its generation has the value too: no order between different words is needed.
#pragma once

#include "sched/wait.h"

namespace ofa {

// One generation of a message buffer.
struct Message {
    Matrix<uint64_t> packets;
    uint32_t tag;
};

OFA_INLINE Message message_of(const TaskContext& ctx, int i) {
    const Operand& o = ctx.launch->operands[ctx.task->operands[i]];
    return {ctx.operand<uint64_t>(i), uint32_t(ctx.iteration * o.generations + o.generation + 1)};
}

OFA_INLINE uint32_t tag_of(uint64_t packet) { return uint32_t(packet >> 32); }

OFA_INLINE float value_of(uint64_t packet) {
    const uint32_t bits = uint32_t(packet);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

OFA_INLINE void publish(const Message& message, int64_t row, int64_t col, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    store_relaxed(message.packets.row(row) + col, uint64_t(message.tag) << 32 | bits);
}

// Elements first .. first + n of a row, into `to`, which all threads may read afterwards. False when the block must
// give the task up. Every thread looks at its packets; while some are missing the leader waits for the first of them.
OFA_FUNCTION bool receive(Block& block, const TaskContext& ctx, const Message& message, int64_t row, int64_t first,
                          int64_t n, float* to) {
    const uint64_t* const packets = message.packets.row(row) + first;
    const uint32_t tag = message.tag;
    for (;;) {
        const int64_t left = block.max(n, int64_t(0), [&](int64_t i) {
            const uint64_t packet = load_relaxed(packets + i);
            if (tag_of(packet) != tag) return n - i;
            to[i] = value_of(packet);
            return int64_t(0);
        });
        if (left == 0) {
            if (block.leader()) jitter(*ctx.launch, ctx.sm);
            return true;
        }
        const uint64_t there = uint64_t(n - left);
        const auto seen = [&] { return tag_of(load_relaxed(packets + there)) == tag ? uint64_t(n) : there; };
        if (!block.broadcast([&] { return wait_until(ctx, NONE_U32, uint64_t(n), seen); })) return false;
    }
}

}  // namespace ofa
