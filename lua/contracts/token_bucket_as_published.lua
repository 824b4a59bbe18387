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
  expect = { bad_input = "fail", clock = "fail", retry = "fail", no_trace = "fail", plan = "fail" },
}
