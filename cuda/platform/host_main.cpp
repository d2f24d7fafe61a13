// Runs a launch that Python saved to a file, as a program of its own: the form in which a sanitizer can watch it.
//
// File: u8 magic, n_pointers, launch_offset, image_bytes; n_pointers pairs (u8 offset of a pointer, u8 offset of what
// it points to); the image. Written by ofa_tui/engine/arena.py.

#include "megakernel.cu"

#include <stdio.h>
#include <stdlib.h>

namespace {

constexpr uint64_t IMAGE_MAGIC = 0x31474D4941464F;  // "OFAIMG1"

struct Header {
    uint64_t magic, n_pointers, launch_offset, image_bytes;
};

struct Relocation {
    uint64_t field, target;
};

uint8_t* load_image(const char* path, uint64_t* launch_offset) {
    FILE* file = fopen(path, "rb");
    Header header;
    if (!file || fread(&header, sizeof header, 1, file) != 1 || header.magic != IMAGE_MAGIC) return nullptr;
    Relocation* relocations = static_cast<Relocation*>(malloc(header.n_pointers * sizeof(Relocation)));
    uint8_t* image = static_cast<uint8_t*>(aligned_alloc(128, header.image_bytes));
    if (!relocations || !image) return nullptr;
    if (fread(relocations, sizeof(Relocation), header.n_pointers, file) != header.n_pointers) return nullptr;
    if (fread(image, 1, header.image_bytes, file) != header.image_bytes) return nullptr;
    fclose(file);
    for (uint64_t i = 0; i < header.n_pointers; ++i) {
        const uint64_t address = reinterpret_cast<uint64_t>(image) + relocations[i].target;
        memcpy(image + relocations[i].field, &address, sizeof address);
    }
    free(relocations);
    *launch_offset = header.launch_offset;
    return image;
}

// A run, the counts at which it has made some tokens and frames, and how often its state was read meanwhile.
struct Run {
    const ofa::Launch* launch;
    uint64_t tokens, frames, copies;
};

void write_hold(const ofa::Launch* launch, uint32_t clock, uint64_t word) {
    ofa::store_release(&const_cast<ofa::Control*>(launch->control)->hold[clock], word);
}

// Whether the iterations of a clock stand still for us; false where they never will.
bool hold(const ofa::Launch* launch, uint32_t clock, uint64_t word) {
    const ofa::Telemetry* telemetry = launch->telemetry;
    write_hold(launch, clock, word);
    while (ofa::load_acquire(&telemetry->held[clock]) != word) {
        if (ofa::load_acquire(&telemetry->finished) != 0 || ofa::load_acquire(&telemetry->abort.code) != 0) return false;
        ofa::sleep_ns(200000);
    }
    return true;
}

// Reads every operand of every task while training and serving are held, as an engine that copies the state does: a
// task that still wrote one would be a race.
void read_state(Run& run) {
    const ofa::Launch* launch = run.launch;
    const uint64_t word = 1 + run.copies % (ofa::HOLD_NUMBERS - 1);
    if (hold(launch, ofa::CLOCK_STEP, word) && (launch->n_sms < 2 || hold(launch, ofa::CLOCK_TOKEN, word))) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < launch->n_operands; ++i) {
            const ofa::Operand& o = launch->operands[i];
            for (uint64_t byte = 0; byte < o.copies * o.copy_bytes; byte += 64) sum += o.base[byte];
        }
        volatile uint64_t sink = sum;
        (void)sink;
        ++run.copies;
    }
    write_hold(launch, ofa::CLOCK_TOKEN, 0);
    write_hold(launch, ofa::CLOCK_STEP, 0);
}

// Asks the run to stop once training is over and tokens and frames have been made too.
void* stop_when_done(void* argument) {
    Run& run = *static_cast<Run*>(argument);
    const ofa::Launch* launch = run.launch;
    const ofa::Telemetry* telemetry = launch->telemetry;
    const bool serves = launch->n_sms > 1;
    for (;;) {
        const bool trained = ofa::load_acquire(&telemetry->finished) != 0;
        const bool served = !serves || ofa::load_acquire(&telemetry->tokens_served) >= run.tokens;
        const bool drawn = launch->n_games == 0 || ofa::load_acquire(&telemetry->frames[0]) >= run.frames;
        if ((trained && served && drawn) || ofa::load_acquire(&telemetry->abort.code) != 0) break;
        if (!trained) read_state(run);
        ofa::sleep_ns(1000000);
    }
    ofa::store_release(&const_cast<ofa::Control*>(launch->control)->stop, 1u);
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t launch_offset = 0;
    uint8_t* image = argc == 2 || argc == 4 ? load_image(argv[1], &launch_offset) : nullptr;
    if (!image) {
        fprintf(stderr, "usage: %s IMAGE [TOKENS FRAMES], a launch image and how many to make at least\n", argv[0]);
        return 2;
    }
    ofa::Launch* launch = reinterpret_cast<ofa::Launch*>(image + launch_offset);
    const uint64_t tokens = argc == 4 ? strtoull(argv[2], nullptr, 10) : 8;
    const uint64_t frames = argc == 4 ? strtoull(argv[3], nullptr, 10) : 3;
    Run run = {launch, launch->telemetry->tokens_served + tokens, launch->telemetry->frames[0] + frames, 0};
    pthread_t stopper;
    if (pthread_create(&stopper, nullptr, stop_when_done, &run) != 0) return 2;
    const int error = ofa_run(launch);
    pthread_join(stopper, nullptr);
    const ofa::Telemetry* telemetry = launch->telemetry;
    printf("steps %llu tokens %llu frames %llu copies %llu abort %u\n", (unsigned long long)telemetry->steps_done,
           (unsigned long long)telemetry->tokens_served, (unsigned long long)telemetry->frames[0],
           (unsigned long long)run.copies, telemetry->abort.code);
    for (uint64_t row = 0; row < telemetry->steps_done - launch->schedule.first_step; ++row)
        printf("loss %.9g\n", double(launch->losses[row]));
    const bool failed = error != 0 || telemetry->abort.code != 0;
    free(image);
    return failed ? 1 : 0;
}
