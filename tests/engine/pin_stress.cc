// The kernel's own op_publish against its own pin_version and release_pin, for test_pin_stress.py: a trainer thread
// fills the copy of each new version with its number, and a server thread reads the copy of the version it has pinned.
//
// pin_stress FIRST_STEP STEPS, with FIRST_STEP at least 1; ends early at the first token with wrong words.

#include "ofa_abi.h"
#include "platform/platform.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

namespace ofa {

// Lets the other thread go ahead by nothing, a moment or a time slice.
inline void stumble() {
    static thread_local uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (state % 64 == 0) sched_yield();
    if (state % 4 == 0)
        for (uint64_t i = state >> 55; i > 0; --i) asm volatile("");
}

template <class T>
T stumbling_load(const T* p) {
    stumble();
    return load_seq_cst(p);
}

template <class T>
T stumbling_exchange(T* p, T value) {
    stumble();
    return exchange_seq_cst(p, value);
}

}  // namespace ofa

// The functions under test are the kernel's, to the letter; only the time between two of their atomics differs.
#define load_seq_cst stumbling_load
#define exchange_seq_cst stumbling_exchange

#include "ops/step.h"
#include "serve/serve_state.h"

namespace {

using namespace ofa;

constexpr uint64_t COPIES = 3, WORDS = 64;

struct Run {
    Launch launch;
    Telemetry telemetry;
    Control control;
    ServeState serve;
    Queue queues[4];
    Task task;
    uint64_t first_step, end_step;
    uint64_t copies[COPIES][WORDS];
    uint64_t tokens, wrong_words;
};

void fill(Run& run, uint64_t version) {
    for (uint64_t i = 0; i < WORDS; ++i) run.copies[version % COPIES][i] = version;
}

void* train(void* argument) {
    Run& run = *static_cast<Run*>(argument);
    Block block(0, nullptr, 0);
    for (uint64_t step = run.first_step; step < run.end_step; ++step) {
        fill(run, step + 1);
        uint64_t waits_ns = 0;
        const TaskContext ctx = {&run.launch, &run.task, PROGRAM_TRAIN, 0, step, step, 0, false, 0, 0, &waits_ns};
        op_publish(block, ctx);
        if (load_acquire(&run.wrong_words) != 0 || load_acquire(&run.telemetry.abort.code) != 0) break;
    }
    store_release(&run.telemetry.finished, 1u);
    return nullptr;
}

void* serve(void* argument) {
    Run& run = *static_cast<Run*>(argument);
    while (load_acquire(&run.telemetry.finished) == 0) {
        const uint64_t version = pin_version(run.serve);
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < WORDS; ++i) wrong += run.copies[version % COPIES][i] != version;
        release_pin(run.serve);
        if (wrong != 0) store_release(&run.wrong_words, wrong);
        ++run.tokens;
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    Run& run = *static_cast<Run*>(aligned_alloc(128, (sizeof(Run) + 127) / 128 * 128));
    memset(&run, 0, sizeof run);
    run.first_step = strtoull(argv[1], nullptr, 10);
    const uint64_t steps = strtoull(argv[2], nullptr, 10);
    run.end_step = run.first_step + steps;
    run.launch.telemetry = &run.telemetry;
    run.launch.control = &run.control;
    run.launch.serve = &run.serve;
    run.launch.queues = run.queues;
    run.launch.step_end_ns = static_cast<uint64_t*>(calloc(steps, sizeof(uint64_t)));
    run.launch.schedule.first_step = run.first_step;
    run.launch.schedule.steps = run.end_step;
    run.launch.programs[PROGRAM_TRAIN].tasks = &run.task;
    run.control.deadline_ns = 20000000000;
    run.serve.published = run.first_step;
    run.serve.pin = NONE_U64;
    fill(run, run.first_step);
    pthread_t trainer, server;
    const bool started = pthread_create(&trainer, nullptr, train, &run) == 0 &&
                         pthread_create(&server, nullptr, serve, &run) == 0;
    if (!started) return 2;
    pthread_join(trainer, nullptr);
    pthread_join(server, nullptr);
    printf("steps %llu tokens %llu wrong %llu abort %u\n",
           (unsigned long long)(run.telemetry.steps_done - run.first_step), (unsigned long long)run.tokens,
           (unsigned long long)run.wrong_words, run.telemetry.abort.code);
    return run.wrong_words != 0 || run.telemetry.abort.code != 0;
}
