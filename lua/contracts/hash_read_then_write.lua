-- Window and count in a hash, read in one round trip and written in another: two clients that read the same count
-- both write the next one, and one admission is forgotten.
return {
  name = "hash read then write",
  promises = "fixed_window",
  take = function(redis, call)
    local key = "w:{" .. call.key .. "}"
    local second = tostring(math.floor(call.now_us / 1000000))
    local stored = redis.call("HMGET", key, "second", "count")
    local count = stored[1] == second and tonumber(stored[2]) or 0
    if count >= call.limit.capacity then return { allowed = false } end
    redis.pipeline{ { "HSET", key, "second", second, "count", count + 1 }, { "EXPIRE", key, 2 } }
    return { allowed = true }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
  expect = { concurrency = "fail" },
}
