-- The token bucket as it was first published after the incident: known to be wrong, and how.
return {
  name = "token bucket as published",
  promises = "token_bucket",
  resolution = "ms",
  clock = "ms",
  script = "../incident/token_bucket_as_published.lua",
  keys = function(call) return { "rl:{" .. call.key .. "}" } end,
  args = function(call) return { call.limit.capacity, call.limit.refill, call.cost } end,
  reply = function(r) return { allowed = r[1] == 1, retry_after_ms = r[2] } end,
  limits = { capacity = { 1, 1000 }, refill = { 1, 1000 }, period = "1s", cost = { 1, 1000 } },
  expect = {
    bound = "fail",  -- a clock that swings back and forth is paid twice
    exact = "fail",  -- tokens are fractions in binary: 0.001 + 0.999 is not 1
    retry = "fail",
    lifetime = "fail",
    no_trace = "fail",
    bad_input = "fail",
    clock = "fail",
    plan = "fail",
  },
}
