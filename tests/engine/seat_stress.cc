// The kernel's own seats under stress, for test_seat_stress.py: blocks come and go all the time and share tokens whose
// tasks only look whether all is as it should be. The loop is that of megakernel.cu, with naps of random length.
//
// seat_stress TOKENS DEADLINE_MS

#include "ofa_abi.h"
#include "platform/platform.h"

#include "sched/boundary.h"
#include "sched/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

namespace {

using namespace ofa;

// The queue: the opener, a run of tasks without a signal, a run that the next run waits for, which the last task waits for.
constexpr uint32_t BLOCKS = 7, PLAIN = 5, HEAD = 4, ROWS = 2;
constexpr uint32_t FIRST_HEAD = 1 + PLAIN, FIRST_ROW = FIRST_HEAD + HEAD, LAST = FIRST_ROW + ROWS, TASKS = LAST + 1;
constexpr uint32_t HEAD_COUNTER = 0, ROWS_COUNTER = 1, TOKEN_COUNTER = 2, COUNTERS = 3;

struct Run {
    Launch launch;
    Telemetry telemetry;
    Control control;
    ServeState serve;
    Queue queues[ROLE_COUNT];
    uint64_t counters[COUNTERS * COUNTER_STRIDE];
    uint32_t roles[MAX_SMS];
    Seat seats[MAX_SMS];
    Task tasks[TASKS];
    uint64_t run_of[TASKS];  // tokens in which that task was run; plain, like a cache that blocks hand on
    uint64_t tokens, wrong, joined, alone;
};

struct Worker {
    Run* run;
    uint32_t sm;
};

uint64_t random_number(uint64_t* state) {
    *state = mix_bits(*state + 1);
    return *state;
}

void nap(uint64_t* state) {
    const uint64_t bits = random_number(state);
    if (bits % 8 == 0) sleep_ns((bits >> 32) % 20000);
}

// What stands for a body; false when the queue ends here.
bool body(Run& run, const TaskContext& ctx, uint32_t task) {
    if (task == 0) {
        if (load_acquire(&run.control.stop) != 0) {
            end_queue(ctx);
            return false;
        }
        exchange_seq_cst(&run.serve.pin, ctx.iteration);
        open_to_blocks(ctx);
        if (load_relaxed(&run.serve.members) == 0) ++run.alone;
    }
    const bool right = load_relaxed(&run.serve.pin) == ctx.iteration && run.run_of[task] == ctx.iteration &&
                       run.tokens == ctx.iteration;
    if (!right) fetch_add_relaxed(&run.wrong, uint64_t(1));
    run.run_of[task] = ctx.iteration + 1;
    if (task == LAST) {
        exchange_seq_cst(&run.serve.pin, uint64_t(NONE_U64));
        run.tokens = ctx.iteration + 1;
        store_release(&run.telemetry.tokens_served, ctx.iteration + 1);
    }
    return true;
}

void* work(void* argument) {
    const Worker self = *static_cast<Worker*>(argument);
    Run& run = *self.run;
    uint64_t random = self.sm;
    Place place = {};
    uint64_t waits_ns = 0;
    TaskContext ctx;
    ctx.waits_ns = &waits_ns;
    for (uint32_t role = load_acquire(&run.roles[self.sm]);;) {
        role = choose_role(run.launch, self.sm, role, place);
        const bool without = place.blocks == 0;
        const uint64_t ticket = claim_ticket(run.launch, self.sm, role, place);
        if (ticket == TICKET_LEAVE) return nullptr;
        if (ticket == TICKET_NONE) {
            sleep_ns(random_number(&random) % 300000);
            continue;
        }
        if (without) fetch_add_relaxed(&run.joined, uint64_t(1));
        locate_task(run.launch, self.sm, role, ticket, &ctx);
        if (!wait_for_inputs(ctx) || !wait_for_opening(ctx, place)) continue;
        nap(&random);
        if (body(run, ctx, uint32_t(ctx.task - run.tasks)) && !aborted(run.launch)) signal(ctx);
    }
}

// Moves SMs between serve and idle; now and then nobody serves.
void* move_roles(void* argument) {
    Run& run = *static_cast<Run*>(argument);
    uint64_t random = 99;
    for (uint64_t n = 0; load_acquire(&run.control.stop) == 0 && !aborted(run.launch); ++n) {
        const uint64_t bits = random_number(&random);
        const int32_t role = (bits >> 8) % 3 == 0 ? ROLE_IDLE : ROLE_SERVE;
        const bool empty_all = bits % 64 == 0;
        for (uint32_t sm = 0; sm < BLOCKS; ++sm) {
            if (!empty_all && sm != (bits >> 16) % BLOCKS) continue;
            const uint64_t posted = run.control.posted[CLOCK_STEP];
            run.control.events[CLOCK_STEP][posted % EVENT_RING] = {
                0, ACTION_SET_ROLE, sm, {empty_all ? int32_t(ROLE_IDLE) : role, 0, 0, 0}};
            store_release(&run.control.posted[CLOCK_STEP], posted + 1);
            apply_step_events(run.launch, 0);
        }
        sleep_ns((bits >> 32) % 200000);
    }
    return nullptr;
}

void fill(Run& run, uint64_t deadline_ms) {
    for (uint32_t task = 0; task < TASKS; ++task) {
        const uint32_t first = task == 0 ? 0 : task < FIRST_HEAD ? 1 : task < FIRST_ROW ? FIRST_HEAD
                             : task < LAST ? FIRST_ROW : LAST;
        run.tasks[task].lane = uint16_t(task - first);
        run.tasks[task].opcode = OPCODE_SAMPLE;  // one without waits of its own
        run.tasks[task].signal = first == FIRST_HEAD ? HEAD_COUNTER : first == FIRST_ROW ? ROWS_COUNTER
                               : first == LAST ? TOKEN_COUNTER : NONE_U32;
        run.tasks[task].n_waits = task == 0 || task >= FIRST_ROW ? 1 : 0;
        if (first == FIRST_ROW) run.tasks[task].waits[0] = {HEAD_COUNTER, HEAD, 1, 0};
    }
    run.tasks[0].waits[0] = {TOKEN_COUNTER, 1, 1, 1};
    run.tasks[LAST].waits[0] = {ROWS_COUNTER, ROWS, 1, 0};
    run.launch.n_sms = BLOCKS;
    run.launch.programs[PROGRAM_DECODE] = {run.tasks, TASKS, CLAIM_OWNED};
    run.launch.counters = run.counters;
    run.launch.queues = run.queues;
    run.launch.roles = run.roles;
    run.launch.seats = run.seats;
    run.launch.control = &run.control;
    run.launch.telemetry = &run.telemetry;
    run.launch.serve = &run.serve;
    run.control.deadline_ns = deadline_ms * 1000000;
    run.serve.pin = NONE_U64;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    Run& run = *static_cast<Run*>(aligned_alloc(128, (sizeof(Run) + 127) / 128 * 128));
    memset(static_cast<void*>(&run), 0, sizeof run);
    const uint64_t tokens = strtoull(argv[1], nullptr, 10);
    fill(run, strtoull(argv[2], nullptr, 10));
    pthread_t threads[BLOCKS + 1];
    Worker workers[BLOCKS];
    for (uint32_t sm = 0; sm < BLOCKS; ++sm) {
        workers[sm] = {&run, sm};
        if (pthread_create(&threads[sm], nullptr, work, &workers[sm]) != 0) return 2;
    }
    if (pthread_create(&threads[BLOCKS], nullptr, move_roles, &run) != 0) return 2;
    while (load_acquire(&run.telemetry.tokens_served) < tokens && !aborted(run.launch)) sleep_ns(1000000);
    store_release(&run.control.stop, 1u);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    printf("tokens %llu joined %llu alone %llu wrong %llu abort %u\n", (unsigned long long)run.tokens,
           (unsigned long long)run.joined, (unsigned long long)run.alone, (unsigned long long)run.wrong,
           run.telemetry.abort.code);
    return run.wrong != 0 || run.telemetry.abort.code != 0;
}
