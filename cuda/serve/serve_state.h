// The life of the served text: stories that begin with the end-of-text token, prompts, and the pinned version.
#pragma once

#include "sched/events.h"
#include "task.h"

namespace ofa {

// The stream's next token begins a new story; its cache rows start from 0 again.
OFA_INLINE void start_story(ServeState& serve, Stream& stream) {
    if (stream.position != 0 || !stream.telling) stream.story = serve.stories++;
    stream.position = 0;
    stream.input_token = serve.end_of_text;
    stream.prompt_slot = NONE_U32;
    stream.telling = 1;
}

OFA_INLINE void end_story(ServeState& serve, Stream& stream) {
    if (stream.keeps_telling) return start_story(serve, stream);
    stream.position = 0;
    stream.telling = 0;
    stream.prompt_slot = NONE_U32;
}

OFA_INLINE float float_from_bits(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Streams that draw from one seed have random numbers of their own.
OFA_INLINE uint64_t seed_of_stream(uint64_t seed, uint32_t stream) { return seed + (uint64_t(stream) << 32); }

OFA_FUNCTION void set_sampling(ServeState& serve, const Event& event) {
    const int32_t one = event.args[3];
    for (uint32_t i = 0; i < serve.n_streams; ++i) {
        if (one != ALL_STREAMS && uint32_t(one) != i) continue;
        Stream& stream = serve.streams[i];
        stream.random_seed = seed_of_stream(event.target, i);
        stream.temperature = float_from_bits(event.args[0]);
        stream.top_p = float_from_bits(event.args[1]);
        stream.top_k = uint32_t(event.args[2]);
    }
}

OFA_FUNCTION void apply_token_event(ServeState& serve, const Event& event) {
    if (event.action == ACTION_SAMPLING) return set_sampling(serve, event);
    Stream& stream = serve.streams[event.target];
    if (event.action == ACTION_END_STORY && stream.telling) end_story(serve, stream);
    if (event.action != ACTION_PROMPT) return;
    start_story(serve, stream);
    if (event.args[0] == 0) return;
    stream.prompt_slot = uint32_t(event.args[1]);
    stream.prompt_length = uint32_t(event.args[0]);
    stream.prompt_read = 0;
}

OFA_INLINE uint32_t prompt_tokens_left(const Stream& stream) {
    return stream.prompt_slot == NONE_U32 ? 0 : stream.prompt_length - stream.prompt_read;
}

// The tokens that the pass takes in: the next one of each stream that tells, and of prompts as many more as there is room
// for. One stream at least never rests.
OFA_FUNCTION void choose_rows(const Launch& launch) {
    ServeState& serve = *launch.serve;
    uint32_t telling = 0, n = 0;
    for (uint32_t i = 0; i < serve.n_streams; ++i) telling += serve.streams[i].telling;
    uint32_t room = PASS_ROWS - telling;
    for (uint32_t i = 0; i < serve.n_streams; ++i) {
        const Stream& stream = serve.streams[i];
        if (!stream.telling) continue;
        const uint32_t left = prompt_tokens_left(stream), more = left < room ? left : room;
        const int32_t* prompt = launch.prompts;
        if (left != 0) prompt += uint64_t(stream.prompt_slot) * launch.model.context + stream.prompt_read;
        for (uint32_t k = 0; k <= more; ++k) {
            PassRow& row = serve.rows[n++];
            row.stream = i;
            row.position = stream.position + k;
            row.token = k == 0 ? stream.input_token : prompt[k - 1];
            row.prompt_token = k < left ? prompt[k] : -1;
        }
        room -= more;
    }
    serve.n_rows = n;
}

// f(row) for the rows of the pass, one after the other: what is in scratch memory is a row's own.
template <class F>
OFA_INLINE void for_each_row(Block& block, const TaskContext& ctx, F f) {
    const uint32_t n = ctx.launch->serve->n_rows;
    for (uint32_t row = 0; row < n; ++row) {
        if (row != 0) block.sync();
        f(int64_t(row));
    }
}

// Where a row of the pass stands: its position, and the first row of its stream in a cache.
struct Where {
    int64_t position, first;

    OFA_INLINE Where(const TaskContext& ctx, int64_t row)
        : position(ctx.launch->serve->rows[row].position),
          first(int64_t(ctx.launch->serve->rows[row].stream) * ctx.launch->model.context) {}
};

// Pins the newest complete version and returns it. A version is overwritten by the step after the next; step s + 1
// begins only when it sees no pin below s, and this pin was stored before `published` is read again, so a version
// that is still at most one behind stays complete until it is let go.
OFA_FUNCTION uint64_t pin_version(ServeState& serve) {
    for (uint64_t version = load_relaxed(&serve.published);;) {  // an old one does no harm: it is looked at again
        exchange_seq_cst(&serve.pin, version);
        const uint64_t newest = load_seq_cst(&serve.published);
        if (newest <= version + 1) return version;
        version = newest;
    }
}

OFA_INLINE void release_pin(ServeState& serve) { store_release(&serve.pin, uint64_t(NONE_U64)); }

// Logs the token that follows a row of the pass and makes it its stream's next input.
OFA_FUNCTION void append_token(const TaskContext& ctx, const PassRow& row, int32_t token) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    Stream& stream = serve.streams[row.stream];
    const bool from_prompt = row.prompt_token >= 0;
    Served& entry = launch.served[serve.tokens++ % SERVED_RING];
    entry.token = token;
    entry.flags = (from_prompt ? SERVED_PROMPT : 0u) | (row.position == 0 ? SERVED_FIRST : 0u);
    entry.story = stream.story;
    entry.position = row.position;
    entry.version = ctx.version;
    entry.time_ns = now_ns();
    entry.stream = row.stream;
    ++stream.tokens;
    stream.position = row.position + 1;
    stream.input_token = token;
    if (from_prompt && ++stream.prompt_read == stream.prompt_length) stream.prompt_slot = NONE_U32;
    if ((token == serve.end_of_text && !from_prompt) || stream.position == launch.model.context)
        end_story(serve, stream);
}

// The tokens of the pass in the order of its rows, and the end of its pin. next_token(row) follows a row.
template <class NextToken>
OFA_INLINE void end_pass(const TaskContext& ctx, NextToken next_token) {
    ServeState& serve = *ctx.launch->serve;
    for (uint32_t i = 0; i < serve.n_rows; ++i) append_token(ctx, serve.rows[i], next_token(i));
    store_release(&ctx.launch->telemetry->tokens_served, serve.tokens);
    release_pin(serve);
}

}  // namespace ofa
