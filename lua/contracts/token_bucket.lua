-- The token bucket that weir ships. It claims every limit there is, so that is what it is judged on.
return {
  name = "token bucket",
  promises = "token_bucket",
  resolution = "ms",
  state = "weir",
  script = "../token_bucket.lua",
  keys = function(call) return { "rl:{" .. call.key .. "}" } end,
  args = function(call) return { call.limit.capacity, call.limit.refill, call.cost, call.limit.period_us } end,
  reply = function(r)
    return { allowed = r[1] == 1, retry_after_ms = r[2], remaining = r[3], reset_after_ms = r[4] }
  end,
  limits = { capacity = { 1, 2^51 }, refill = { 1, 2^40 }, period = { 1, 2^51 }, cost = { 0, 2^51 } },
}
