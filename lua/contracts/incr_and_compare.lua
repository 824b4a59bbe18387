-- A fixed window in one round trip: the count that INCR replies is the caller's place in the queue, so no two
-- callers can both be the last one admitted. Denied calls count too, which nobody sees: the window is full anyway.
return {
  name = "incr and compare",
  promises = "fixed_window",
  take = function(redis, call)
    local key = ("w:{%s}:%d"):format(call.key, math.floor(call.now_us / 1000000))
    local replies = redis.pipeline{ { "MULTI" }, { "INCR", key }, { "EXPIRE", key, 2 }, { "EXEC" } }
    return { allowed = replies[4][1] <= call.limit.capacity }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
}
