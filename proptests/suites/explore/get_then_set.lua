-- A counter that is read, and written back one higher: two round trips whatever the answer, so that it races in
-- the plainest way there is. Nothing comes back and nothing expires: its limit is on all calls together.
return {
  name = "get then set",
  promises = "token_bucket",
  take = function(redis, call)
    local key = "n:{" .. call.key .. "}"
    local count = tonumber(redis.call("GET", key) or 0)
    local allowed = count < call.limit.capacity
    redis.call("SET", key, allowed and count + 1 or count)
    return { allowed = allowed }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
  expect = { concurrency = "fail" },
}
