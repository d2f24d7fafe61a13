// From a wish to be somewhere to a command: turning, running and strafing within what a keyboard can do.
#pragma once

#include "../sim/game.h"

namespace doom {

constexpr int RUN_FORWARD = 50, RUN_SIDE = 40;
constexpr Fixed RUN_SPEED = 16 * UNIT;

// What the player wants to do in a tic: a velocity for the legs, a direction for the eyes, buttons for the hands.
struct Intent {
    Fixed vx, vy;
    Angle face;
    uint8_t buttons;
    uint8_t moving;             // means to get on: standing still would be a failure
    uint8_t busy;               // the eyes are needed: no looking elsewhere
    uint8_t haste;              // turns as fast and as exactly as it can
};

OFA_FUNCTION int limit(int value, int most) { return value > most ? most : value < -most ? -most : value; }

OFA_FUNCTION Intent stand_still(const Mobj& m) { return {0, 0, m.angle, 0, 0, 0, 0}; }

OFA_FUNCTION Angle angle_towards(const WorldBase& w, const Mobj& m, Fixed x, Fixed y) {
    return angle_to(w, m.x, m.y, x, y);
}

OFA_FUNCTION Fixed distance_from(const Mobj& m, Fixed x, Fixed y) {
    return approximate_distance(wrap_sub(x, m.x), wrap_sub(y, m.y));
}

OFA_FUNCTION void move_along(const WorldBase& w, Intent& in, Angle angle, Fixed speed) {
    in.vx = fixed_mul(speed, cosine_of(w, angle));
    in.vy = fixed_mul(speed, sine_of(w, angle));
}

// Runs towards a point, slower near it.
OFA_FUNCTION void run_to(const WorldBase& w, Intent& in, const Mobj& m, Fixed x, Fixed y) {
    const Fixed speed = distance_from(m, x, y) / 5 + UNIT;
    move_along(w, in, angle_towards(w, m, x, y), speed > RUN_SPEED ? RUN_SPEED : speed);
}

OFA_FUNCTION void face(const WorldBase& w, Intent& in, const Mobj& m, Fixed x, Fixed y) {
    in.face = angle_towards(w, m, x, y);
}

OFA_FUNCTION bool is_within(Angle a, Angle b, int32_t arc) {
    const int32_t left = int32_t(a - b);
    return left > -arc && left < arc;
}

OFA_FUNCTION bool is_facing(const Mobj& m, Angle wish, int32_t arc) { return is_within(wish, m.angle, arc); }

// Turning as a hand does it: gathering speed, and slower towards the end. In steps of 1/256 of a circle, a tic.
struct Hand {
    int most, gain;             // speed; thousandths of what is left to turn
    int more;                   // so much faster or slower than the tic before
    int exact;                  // below that it turns all at once
    int idle;                   // and below that not at all
};
OFA_TABLE Hand CALM_HAND = {14, 450, 6, 0, 2}, HASTY_HAND = {22, 1000, 16, 8, 0};

OFA_FUNCTION int turn_steps(const Hand& hand, int left, int before) {
    const int size = left < 0 ? -left : left;
    if (size < hand.idle) return 0;
    if (size < hand.exact) return left;
    const int wish = limit(left * hand.gain / 1000 + (left > 0 ? 1 : -1), hand.most);
    return wish > before + hand.more ? before + hand.more : wish < before - hand.more ? before - hand.more : wish;
}

// The command for an intent. Turns go in steps of 1/256 of a circle, as a demo stores them; what the legs do is relative
// to where the body will look after this command's turn.
OFA_FUNCTION TicCommand command_for(const WorldBase& w, const Player& p, const Intent& in) {
    const Mobj& m = w.g.mobjs[p.mobj];
    TicCommand c = {};
    const int left = ((int32_t(in.face - m.angle) >> 16) + 128) >> 8;
    c.turn = int16_t(turn_steps(in.haste ? HASTY_HAND : CALM_HAND, left, p.command.turn >> 8) * 256);
    const Angle facing = m.angle + (Angle(uint16_t(c.turn)) << 16);
    const Fixed ax = in.vx - m.momx, ay = in.vy - m.momy;
    const Fixed along = fixed_mul(ax, cosine_of(w, facing)) + fixed_mul(ay, sine_of(w, facing));
    const Fixed right = fixed_mul(ax, sine_of(w, facing)) - fixed_mul(ay, cosine_of(w, facing));
    c.forward = int8_t(limit(along / 2048, RUN_FORWARD));
    c.side = int8_t(limit(right / 2048, RUN_SIDE));
    c.buttons = in.buttons;
    return c;
}

}  // namespace doom
