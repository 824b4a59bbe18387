#pragma once

#include <string>

#include "proptests/harness/clock_page.h"
#include "proptests/harness/connection.h"

namespace weir::harness {

/// Does the server tell the time we set, to the microsecond, forward and backward, at once? Fails
/// closed: throws EnvironmentError, naming `server`, at the first reading that differs, because a
/// verdict over a clock that we do not own would be worth nothing. Leaves the clock as it was.
void probe_clock(Connection& connection, ClockPage& page, const std::string& server);

}  // namespace weir::harness
