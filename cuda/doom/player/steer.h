// From a wish to be somewhere to a command: turning, running and strafing within what a keyboard can do.
#pragma once

#include "../sim/game.h"

namespace doom {

constexpr int TURN_LIMIT = 10 << 8;       // a tenth of a quarter turn and a bit, per tic
constexpr int RUN_FORWARD = 50, RUN_SIDE = 40;
constexpr Fixed RUN_SPEED = 13 * UNIT;

OFA_FUNCTION int limit(int value, int most) { return value > most ? most : value < -most ? -most : value; }

// Turns towards an angle in steps of 1/256 of a circle. Returns what is left of the turn.
OFA_FUNCTION int32_t turn_towards(TicCommand& c, Angle now, Angle wish) {
    const int32_t difference = int32_t(wish - now);
    c.turn = int16_t(limit(((difference >> 16) + 128) & ~255, TURN_LIMIT));
    return difference;
}

// Accelerates towards a velocity; what the legs do is relative to where the body will look after this command's turn.
OFA_FUNCTION void move_with_velocity(const WorldBase& w, TicCommand& c, const Mobj& m, Fixed vx, Fixed vy) {
    const Angle facing = m.angle + (Angle(uint16_t(c.turn)) << 16);
    const Fixed ax = vx - m.momx, ay = vy - m.momy;
    const Fixed along = fixed_mul(ax, cosine_of(w, facing)) + fixed_mul(ay, sine_of(w, facing));
    const Fixed right = fixed_mul(ax, sine_of(w, facing)) - fixed_mul(ay, cosine_of(w, facing));
    c.forward = int8_t(limit(along / 2048, RUN_FORWARD));
    c.side = int8_t(limit(right / 2048, RUN_SIDE));
}

// Runs towards a point, slower near it.
OFA_FUNCTION void run_to(const WorldBase& w, TicCommand& c, const Mobj& m, Fixed x, Fixed y) {
    const Angle angle = angle_to(w, m.x, m.y, x, y);
    Fixed speed = approximate_distance(x - m.x, y - m.y) / 5 + UNIT;
    if (speed > RUN_SPEED) speed = RUN_SPEED;
    move_with_velocity(w, c, m, fixed_mul(speed, cosine_of(w, angle)), fixed_mul(speed, sine_of(w, angle)));
}

OFA_FUNCTION void stand(const WorldBase& w, TicCommand& c, const Mobj& m) { move_with_velocity(w, c, m, 0, 0); }

}  // namespace doom
