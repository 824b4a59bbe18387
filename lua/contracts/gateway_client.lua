-- The incident: a gateway that reads a counter, decides in the application, and writes it back in a second
-- round trip. Between the two, every other client reads the same count. A partner was promised 100 requests a
-- second and saw 310. INCR and EXPIRE are atomic here; what is not is the decision.
return {
  name = "gateway client",
  promises = "fixed_window",
  take = function(redis, call)
    local second = math.floor(call.now_us / 1000000)
    local key = ("rl:{%s}:%d"):format(call.key, second)
    local count = tonumber(redis.call("GET", key) or 0)
    if count >= tonumber(call.limit.capacity) then return { allowed = false } end
    redis.pipeline{ { "MULTI" }, { "INCR", key }, { "EXPIRE", key, 2 }, { "EXEC" } }
    return { allowed = true }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
  expect = { concurrency = "fail" },
}
