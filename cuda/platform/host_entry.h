// What the CPU build exports: a thread per virtual SM, and the few calls the host needs beside it.
#pragma once

#include <errno.h>
#include <pthread.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace ofa {

struct VirtualSm {
    const Launch* launch;
    uint32_t sm;
    pthread_t thread;
};

// Moments of rows that get no gradient decay into subnormal numbers, which are slow and worth nothing.
inline void flush_subnormals() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t fpcr;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    asm volatile("msr fpcr, %0" : : "r"(fpcr | (uint64_t(1) << 24)));
#endif
}

inline Block host_block(const Launch* launch, uint32_t sm) {
    return Block(sm, launch->scratch + sm * launch->scratch_bytes, launch->scratch_bytes);
}

inline void* run_virtual_sm(void* argument) {
    const VirtualSm* self = static_cast<const VirtualSm*>(argument);
#if defined(__linux__)
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // nanoseconds; the default adds 50 microseconds to every sleep
#endif
    flush_subnormals();
    Block block = host_block(self->launch, self->sm);
    Turn turn;
    run_block(block, *self->launch, turn);
    return nullptr;
}

inline int start_threads(const Launch* launch, VirtualSm* sms, uint32_t* started) {
    for (uint32_t sm = 0; sm < launch->n_sms; ++sm, ++*started) {
        sms[sm] = {launch, sm, {}};
        const int error = pthread_create(&sms[sm].thread, nullptr, run_virtual_sm, &sms[sm]);
        if (error != 0) return error;
    }
    return 0;
}

}  // namespace ofa

extern "C" {

// Runs all blocks and returns when the last has left: 0, or the error number of a thread that could not be started.
int ofa_run(const ofa::Launch* launch) {
    if (launch->n_sms > ofa::MAX_SMS) return EINVAL;
    ofa::VirtualSm sms[ofa::MAX_SMS];
    uint32_t started = 0;
    launch->telemetry->started_ns = ofa::now_ns();
    const int error = ofa::start_threads(launch, sms, &started);
    if (error != 0) ofa::store_relaxed(&const_cast<ofa::Control*>(launch->control)->abort, 1u);
    for (uint32_t sm = 0; sm < started; ++sm) pthread_join(sms[sm].thread, nullptr);
    return error;
}

// Runs the body of one task in the calling thread, without waits and signal. 0, or -1 for an unknown opcode.
int ofa_run_task(const ofa::Launch* launch, uint32_t program, uint64_t iteration, uint32_t task) {
    ofa::Block block = ofa::host_block(launch, 0);
    uint64_t waits_ns = 0;
    ofa::TaskContext ctx = {launch, launch->programs[program].tasks + task, program, 0, iteration, 0, 0, false, 0, 0,
                            &waits_ns};
    ctx.version = ofa::weight_version(ctx);
    return ofa::run_body(block, ctx) ? 0 : -1;
}

// Posts an event of `clock`; the host has made sure that its place in the ring is free.
void ofa_post(const ofa::Launch* launch, uint32_t clock, const ofa::Event* event) {
    ofa::Control* control = const_cast<ofa::Control*>(launch->control);
    const uint64_t n = control->posted[clock];
    control->events[clock][n % ofa::EVENT_RING] = *event;
    ofa::store_release(&control->posted[clock], n + 1);
}

// Reads a word that the kernel stores with release order: what was written before it is visible afterwards.
uint64_t ofa_load_acquire(const uint64_t* word) { return ofa::load_acquire(word); }

// Copies the layout the library was compiled with, see ofa_tui/abi_header.py; returns how many numbers there are.
uint32_t ofa_layout(uint64_t* numbers, uint32_t capacity) {
    using namespace ofa;
    const uint64_t layout[] = {OFA_LAYOUT};
    const uint32_t count = sizeof(layout) / sizeof(layout[0]);
    for (uint32_t i = 0; i < count && i < capacity; ++i) numbers[i] = layout[i];
    return count;
}

// Bytes of scratch memory that an SM needs for any task of this model.
uint64_t ofa_scratch_bytes(const ofa::Launch* launch) {
    const uint64_t needs[] = {ofa::training_scratch_bytes(launch->model), ofa::serving_scratch_bytes(launch->model),
                              ofa::streaming_scratch_bytes(launch->model)};
    uint64_t most = 0;
    for (const uint64_t need : needs) most = need > most ? need : most;
    return most;
}

uint64_t ofa_doom_game_bytes() { return sizeof(ofa::DoomTable); }
uint64_t ofa_doom_snapshot_bytes() { return sizeof(ofa::DoomState); }
}
