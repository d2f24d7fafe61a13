// The life of the served text: stories that begin with the end-of-text token, prompts, and the pinned version.
#pragma once

#include "sched/events.h"
#include "task.h"

namespace ofa {

// The next token begins a new story; its cache rows start from 0 again.
OFA_INLINE void start_story(ServeState& serve) {
    if (serve.position != 0) ++serve.story;
    serve.position = 0;
    serve.input_token = serve.end_of_text;
    serve.prompt_slot = NONE_U32;
}

OFA_INLINE float float_from_bits(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

OFA_FUNCTION void apply_token_event(ServeState& serve, const Event& event) {
    if (event.action == ACTION_PROMPT) {
        start_story(serve);
        serve.prompt_slot = event.target;
        serve.prompt_length = uint32_t(event.args[0]);
        serve.prompt_read = 0;
    } else if (event.action == ACTION_SAMPLING) {
        serve.random_seed = event.target;
        serve.temperature = float_from_bits(event.args[0]);
        serve.top_p = float_from_bits(event.args[1]);
        serve.top_k = uint32_t(event.args[2]);
    }
}

// Pins the newest complete version and returns it. A version is overwritten by the step after the next; step s + 1
// begins only when it sees no pin below s, and this pin was stored before `published` is read again, so a version
// that is still at most one behind stays complete until it is let go.
OFA_FUNCTION uint64_t pin_version(ServeState& serve) {
    for (uint64_t version = load_seq_cst(&serve.published);;) {
        exchange_seq_cst(&serve.pin, version);
        const uint64_t newest = load_seq_cst(&serve.published);
        if (newest <= version + 1) return version;
        version = newest;
    }
}

OFA_INLINE void release_pin(ServeState& serve) { exchange_seq_cst(&serve.pin, uint64_t(NONE_U64)); }

// Logs the token that follows the input token and makes it the next input.
OFA_FUNCTION void append_token(const TaskContext& ctx, int32_t token, bool from_prompt) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    const uint64_t n = serve.tokens;
    Served& entry = launch.served[n % SERVED_RING];
    entry.token = token;
    entry.flags = (from_prompt ? SERVED_PROMPT : 0u) | (serve.position == 0 ? SERVED_FIRST : 0u);
    entry.story = serve.story;
    entry.position = serve.position;
    entry.version = ctx.version;
    entry.time_ns = now_ns();
    serve.tokens = n + 1;
    ++serve.position;
    serve.input_token = token;
    if ((token == serve.end_of_text && !from_prompt) || serve.position == launch.model.context) start_story(serve);
    store_release(&launch.telemetry->tokens_served, n + 1);
}

}  // namespace ofa
