-- A fixed window whose counter gets its lifetime in a second round trip. Nobody is admitted too often; but a client
-- that dies in between leaves a counter that nothing ever removes, and its tenant is locked out for good.
-- Seen by `weir explore --faults 1`; without a fault it does what it promises.
return {
  name = "incr then expire",
  promises = "fixed_window",
  take = function(redis, call)
    local key = ("w:{%s}:%d"):format(call.key, math.floor(call.now_us / 1000000))
    local count = redis.call("INCR", key)
    if count == 1 then redis.call("EXPIRE", key, 2) end
    return { allowed = count <= call.limit.capacity }
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
}
