-- The incident's client, mended with WATCH: it reads, decides, and counts only if nobody has counted since; else
-- it begins anew. Safe; but each grant sends everybody who has read back to the start, so of n clients that come
-- together the last one may read n times.
return {
  name = "watch and retry",
  promises = "fixed_window",
  take = function(redis, call)
    local key = "rl:{" .. call.key .. "}"
    while true do
      local read = redis.pipeline{ { "WATCH", key }, { "TIME" }, { "GET", key } }
      local second, stored = read[2][1], read[3] or "0 0"
      local window, count = stored:match("(%d+) (%d+)")
      count = window == second and tonumber(count) or 0
      if count >= call.limit.capacity then
        redis.call("UNWATCH")
        return { allowed = false }
      end
      local written = redis.pipeline{ { "MULTI" }, { "SET", key, second .. " " .. count + 1, "EX", 2 }, { "EXEC" } }
      if written[3] then return { allowed = true } end
    end
  end,
  limits = { capacity = { 1, 1000 }, period = "1s", cost = { 1, 1 } },
}
