-- A log of the window's admissions that is counted first and added to in a second round trip: whoever counts in
-- between sees room too. Each member is the caller's own, so no caller stands for another.
return {
  name = "zcard then zadd",
  promises = "fixed_window",
  take = function(redis, call)
    local key = ("log:{%s}:%d"):format(call.key, math.floor(call.now_us / 1000000))
    local count = redis.call("ZCARD", key)
    if count >= call.limit.capacity then return { allowed = false } end
    local member = ("%d:%d"):format(count, call.client)
    redis.pipeline{ { "ZADD", key, call.now_us, member }, { "EXPIRE", key, 2 } }
    return { allowed = true }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
  expect = { concurrency = "fail" },
}
