-- A limiter known to be wrong: the token bucket as it was first published after the incident.
--
--   KEYS[1]  the bucket; may be absent (full)
--   ARGV[1]  capacity, tokens    ARGV[2]  refill, tokens per second    ARGV[3]  cost, tokens
--   Returns  {allowed 0|1, retry_ms}
--
-- It is atomic, and so it stopped the leak. What is still wrong with it, each found by the gate: time that ran
-- back and forward again is refilled twice; no argument is checked, so that a negative cost mints tokens and a
-- refill of 0 leaves a key that never expires; a cost above the capacity is told to retry, for ever; a wait that
-- was told is at times not enough, for tokens are fractions in a double; every denial writes.

local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local bucket = redis.call("HMGET", KEYS[1], "tokens", "ts")
local tokens = tonumber(bucket[1] or capacity)
local ts = tonumber(bucket[2] or now)

local elapsed = math.max(0, now - ts)
tokens = math.min(capacity, tokens + elapsed * rate / 1000)

local allowed, retry_ms = 0, 0
if tokens >= cost then
  allowed, tokens = 1, tokens - cost
else
  retry_ms = math.ceil((cost - tokens) * 1000 / rate)
end

redis.call("HSET", KEYS[1], "tokens", tokens, "ts", now)
redis.call("PEXPIRE", KEYS[1], math.ceil(capacity * 1000 / rate) + 1000)
return {allowed, retry_ms}
