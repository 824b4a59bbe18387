-- Token bucket: decides one request, exactly. What is right: DESIGN, section 2; the words are those of decide().
--
--   KEYS[1]  the bucket; may be absent (full)
--   ARGV[1]  capacity, tokens, 1 to 2^51       ARGV[2]  refill, tokens per period, 1 to 2^40
--   ARGV[3]  cost, tokens, 0 (peek) to 2^51    ARGV[4]  period, us, 1 to 2^51; 1000000 if left out
--   Returns  {allowed 0|1, retry_ms, remaining, reset_ms}, integers only; waits rounded up; retry_ms -1: never
--   Errors   "BADARG <name> ..."; Lua's own, which names the argument, for what is no number; "BADKEY <key> ..."
--            where something else is stored; nothing was written
--   State    40 bytes, "<ddddd": debt (units), as_of (us), refill, period (both reduced), expiry (absolute ms)
--
-- One token is `unit` units; `refill` units come back each us. Exact for every limit whose capacity * unit is
-- within 2^51: whole numbers below 2^53 are exact in a double, and so are the floor and ceiling of their quotients.
-- -a % b is what a lacks to a multiple of b: (a + -a % b) / b rounds a / b up. Commands of Redis 5 and later.

local key = KEYS[1]
local capacity, refill, cost, period = ARGV[1], ARGV[2], ARGV[3], ARGV[4] or 1000000
capacity, refill, cost, period = capacity + 0, refill + 0, cost + 0, period + 0

if not (capacity >= 1 and capacity <= 2^51 and capacity % 1 == 0 and refill >= 1 and refill <= 2^40 and refill % 1 == 0
    and cost >= 0 and cost <= 2^51 and cost % 1 == 0 and period >= 1 and period <= 2^51 and period % 1 == 0) then
  for i, of in ipairs({{"capacity", 1, 2^51}, {"refill", 1, 2^40}, {"cost", 0, 2^51}, {"period", 1, 2^51}}) do
    local value = tonumber(ARGV[i] or 1000000)
    if not (value >= of[2] and value <= of[3] and value % 1 == 0) then
      return redis.error_reply(("BADARG %s is %s; it must be a whole number from %.0f to %.0f"):format(
        of[1], ARGV[i], of[2], of[3]))
    end
  end
end
if not key or KEYS[2] or ARGV[5] then
  return redis.error_reply("BADARG KEYS is one key, and ARGV three or four arguments")
end

-- The limit, reduced, so that "2 per 2 s" and "1 per 1 s" are one.
local divisor, rest = refill, period
while rest > 0 do divisor, rest = rest, divisor % rest end
local unit = period / divisor
if capacity > 2^51 / unit then
  return redis.error_reply(("BADARG capacity %.0f does not fit refill %.0f in %.0f us: capacity * period, reduced, "
    .. "must stay within 2^51; the largest capacity at this rate is %.0f"):format(
    capacity, refill, period, (2^51 - 2^51 % unit) / unit))
end
refill = refill / divisor
local full = capacity * unit
local most = 2 * full

local stored = redis.pcall("GET", key)
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

-- Debt at `now`; a bucket that is absent has none.
local debt, expiry, writes = 0, 0, false
if stored then
  if #stored ~= 40 then  -- also what pcall returns for a hash, a list, ...: a table of length 0
    return redis.error_reply("BADKEY " .. key .. " holds something that is no bucket of this script")
  end
  local as_of, old_refill, old_unit
  debt, as_of, old_refill, old_unit, expiry = struct.unpack("<ddddd", stored)
  local elapsed = now - as_of
  if old_refill == refill and old_unit == unit then
    if debt > most then debt = most end
    if elapsed >= 0 then
      if elapsed >= debt / refill then debt = 0 else debt = debt - elapsed * refill end
    else  -- the clock went back: the refill un-happens
      if -elapsed >= (most - debt) / refill then debt = most else debt = debt - elapsed * refill end
      writes = true
    end
  else
    if not (debt >= 0 and debt <= 2^52 and debt % 1 == 0 and as_of >= 0 and as_of <= 2^53 and as_of % 1 == 0
        and old_refill >= 1 and old_refill <= 2^51 and old_refill % 1 == 0
        and old_unit >= 1 and old_unit <= 2^51 and old_unit % 1 == 0) then
      return redis.error_reply("BADKEY " .. key .. " holds 40 bytes that are no bucket of this script")
    end
    -- a * b = quotient * m + remainder, by shift and subtract: nothing but the quotient can pass 2^53, and one
    -- that does stays above 2 * capacity, where it is cut.
    local function muldiv(a, b, m)
      local quotient, remainder, bit = 0, 0, 2^53
      local times, more = (b - b % m) / m, b % m
      while bit >= 1 do
        quotient, remainder = 2 * quotient, 2 * remainder
        if a >= bit then a, quotient, remainder = a - bit, quotient + times, remainder + more end
        while remainder >= m do quotient, remainder = quotient + 1, remainder - m end
        bit = bit / 2
      end
      return quotient, remainder
    end
    -- The plan changed: the one that wrote the state governs up to now, uncut, and what is owed under it becomes
    -- whole tokens and a rest below one; then ours, the rest rounded up to a unit.
    local tokens = 0
    if elapsed < 0 then
      tokens, rest = muldiv(-elapsed, old_refill, old_unit)
      debt = debt + rest
    elseif elapsed >= debt / old_refill then
      debt = 0
    else
      debt = debt - elapsed * old_refill
    end
    rest = debt % old_unit
    tokens = tokens + (debt - rest) / old_unit
    if tokens >= 2 * capacity then
      debt = most
    else
      local units, fraction = muldiv(rest, unit, old_unit)
      debt = tokens * unit + units + (fraction > 0 and 1 or 0)
    end
    writes, expiry = true, 0
  end
end

local allowed, retry_ms = 0, 0
if cost > capacity then
  retry_ms, writes = -1, false
else
  local short = debt + cost * unit - full
  if short <= 0 then
    allowed, debt, writes = 1, short + full, true
  else
    retry_ms = (short + -short % (refill * 1000)) / (refill * 1000)
  end
  if cost == 0 then writes = false end
end

if writes then
  -- Alive until the debt is gone and one time-to-full longer, for a clock can step back over an expiry. What is
  -- needed is less than what is set, so that most grants leave the expiry where it is; a clock that went back can
  -- leave it too far away.
  local now_ms = (now - now % 1000) / 1000
  local life = debt + full
  local alive = now + (life + -life % refill) / refill
  local alive_ms = (alive - alive % 1000) / 1000
  local time_to_full_ms = (full - full % (refill * 1000)) / (refill * 1000)
  if alive_ms <= expiry and expiry <= now_ms + 5 * time_to_full_ms + 2000 then
    redis.call("SETRANGE", key, "0", struct.pack("<dd", debt, now))
  else
    expiry = alive_ms + time_to_full_ms + 1000
    redis.call("SET", key, struct.pack("<ddddd", debt, now, refill, unit, expiry),
      "PX", ("%.0f"):format(expiry - now_ms))
  end
end

local left = debt < full and full - debt or 0
return {allowed, retry_ms, (left - left % unit) / unit, (debt + -debt % (refill * 1000)) / (refill * 1000)}
