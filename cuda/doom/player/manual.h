// manual: a person's keys are the command, for as long as they are held.
#pragma once

#include "../sim/world.h"

namespace doom {

OFA_FUNCTION TicCommand manual(const Game& g) { return g.script.manual; }

}  // namespace doom
