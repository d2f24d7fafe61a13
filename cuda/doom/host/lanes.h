// Blocks to draw with on the CPU besides its own of one thread: they prove that neither the number of threads nor their
// order shows in a picture.
#pragma once

#include <pthread.h>

#include "../../platform/platform.h"

namespace doom {

// A block whose threads run one after another, the last one first.
class ReversedLanes {
public:
    explicit ReversedLanes(int threads) : threads_(threads) {}
    int thread() const { return 0; }
    int threads() const { return threads_; }
    bool leader() const { return true; }
    void sync() {}
    template <class F>
    void for_each(int64_t n, F f) {
        for (int64_t i = n; i-- > 0;) f(i);
    }

private:
    int threads_;
};

// Holds each of `threads` until all have come. May be used again at once. Those who wait sleep: a thread that yields over
// and over is served last by a scheduler with other work, and the block stands still with it.
class Barrier {
public:
    void begin(int threads) {
        threads_ = threads;
        arrived_ = 0;
        pthread_mutex_init(&mutex_, nullptr);
        pthread_cond_init(&all_came_, nullptr);
    }

    void end() {
        pthread_cond_destroy(&all_came_);
        pthread_mutex_destroy(&mutex_);
    }

    void wait() {
        pthread_mutex_lock(&mutex_);
        const uint32_t round = round_;
        if (++arrived_ == threads_) {
            arrived_ = 0;
            ++round_;
            pthread_cond_broadcast(&all_came_);
        }
        while (round_ == round) pthread_cond_wait(&all_came_, &mutex_);
        pthread_mutex_unlock(&mutex_);
    }

private:
    int threads_ = 1, arrived_ = 0;
    uint32_t round_ = 0;
    pthread_mutex_t mutex_;
    pthread_cond_t all_came_;
};

// One of a block's real threads.
class ThreadLane {
public:
    ThreadLane(int thread, int threads, Barrier& barrier) : thread_(thread), threads_(threads), barrier_(barrier) {}
    int thread() const { return thread_; }
    int threads() const { return threads_; }
    bool leader() const { return thread_ == 0; }
    void sync() { barrier_.wait(); }
    template <class F>
    void for_each(int64_t n, F f) {
        for (int64_t i = thread_; i < n; i += threads_) f(i);
    }

private:
    int thread_, threads_;
    Barrier& barrier_;
};

// Threads that wait for work; with the caller they are a block. `work(lane, data)` runs in every thread.
class LanePool {
public:
    static constexpr int MAX_THREADS = 64;
    typedef void (*Work)(ThreadLane& lane, void* data);

    // 0, or the error number of a thread that could not be started; then the pool must not be used.
    int start(int threads) {
        threads_ = threads;
        barrier_.begin(threads);
        for (int i = 1; i < threads; ++i) {
            seats_[i] = {this, i};
            const int error = pthread_create(&handles_[i], nullptr, serve, &seats_[i]);
            if (error != 0) return error;
        }
        return 0;
    }

    void run(Work work, void* data) {
        work_ = work;
        data_ = data;
        ThreadLane lane(0, threads_, barrier_);
        lane.sync();
        work(lane, data);
        lane.sync();
    }

    void stop() {
        work_ = nullptr;
        barrier_.wait();
        for (int i = 1; i < threads_; ++i) pthread_join(handles_[i], nullptr);
        barrier_.end();
    }

private:
    struct Seat {
        LanePool* pool;
        int thread;
    };

    static void* serve(void* argument) {
        const Seat& seat = *static_cast<Seat*>(argument);
        LanePool& pool = *seat.pool;
        ThreadLane lane(seat.thread, pool.threads_, pool.barrier_);
        for (;;) {
            lane.sync();
            if (!pool.work_) return nullptr;
            pool.work_(lane, pool.data_);
            lane.sync();
        }
    }

    int threads_ = 1;
    Barrier barrier_;
    pthread_t handles_[MAX_THREADS];
    Seat seats_[MAX_THREADS];
    Work work_ = nullptr;
    void* data_ = nullptr;
};

}  // namespace doom
