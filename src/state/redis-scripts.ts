/** The Lua script that executes a batch of commands in Redis. */

import { aheadMarginMs } from './token-bucket.ts';

/**
 * Bound of the text in one batch and in its results, in characters. A longer batch would delay the small commands in it, and
 * commands of other clients.
 */
export const maxCharacters = 128 * 1024;

/**
 * Commands of our own, called with their name, key and arguments. `reservePermit` repeats the arithmetic of
 * token-bucket.ts, on the clock of Redis, so that the clocks of the instances do not matter.
 *
 * A stored arrival time that is not a number is not ours and is ignored; otherwise the bucket would stay closed for ever,
 * or would limit nothing.
 */
const ownCommands = `
local own = {}

-- expected: current value; value: new value; ttl: in ms, or nil for no expiry. Returns 0 or 1.
function own.replaceIfUnchanged(_, key, expected, value, ttl)
  if redis.call('GET', key) ~= expected then return 0 end
  if ttl then
    redis.call('SET', key, value, 'PX', ttl)
  else
    redis.call('SET', key, value)
  end
  return 1
end

-- expected: current value. Returns 0 or 1.
function own.removeIfUnchanged(_, key, expected)
  if redis.call('GET', key) ~= expected then return 0 end
  return redis.call('DEL', key)
end

-- Returns the interval and the tolerance of a token bucket, and its arrival time. All times are in ms.
local function read_bucket(key, now, per_second, burst, max_wait, longest_ahead)
  local interval = 1000 / per_second
  local tolerance = math.max(0, burst - 1) * interval
  local known = tonumber(redis.call('GET', key) or now)
  local arrival = now
  if known and known > now then arrival = known end
  longest_ahead = tonumber(longest_ahead) or max_wait + tolerance
  if arrival - now > longest_ahead + interval + ${aheadMarginMs} then arrival = now + tolerance end
  return interval, tolerance, arrival
end

-- The key expires when the bucket is full again. Returns the stored text.
local function write_bucket(key, now, arrival)
  local text = string.format('%.17g', arrival)
  redis.call('SET', key, text, 'PX', math.max(1, math.ceil(arrival - now)))
  return text
end

-- per_second, burst: the rate; max_wait: of this call, in ms; longest_ahead: see BucketRate, in ms. Returns the
-- wait in ms and how far the arrival time then lies ahead, both as text: Redis truncates numbers in replies, and 17 digits
-- represent a double exactly. Reserves nothing if the wait exceeds max_wait.
function own.reservePermit(_, key, per_second, burst, max_wait, longest_ahead)
  local now = clock()
  local interval, tolerance, arrival = read_bucket(key, now, per_second, burst, max_wait, longest_ahead)
  local wait = math.max(0, arrival - tolerance - now)
  if wait <= tonumber(max_wait) then
    arrival = arrival + interval
    write_bucket(key, now, arrival)
  end
  return {string.format('%.17g', wait), string.format('%.17g', arrival - now)}
end

-- leases: position of a hash in KEYS, with the leased permits and the end of each lease. Returns the sum of all leases, and
-- the permits of the lease with this id.
local function read_leases(leases, now, lease_ms, id)
  local sum, of_id = 0, 0
  local entries = redis.call('HGETALL', leases)
  for i = 1, #entries, 2 do
    local count, ends = string.match(entries[i + 1], '^(%d+) (%S+)$')
    ends = tonumber(ends)
    if ends and ends > now and ends <= now + lease_ms then
      sum = sum + count
      if entries[i] == id then of_id = tonumber(count) end
    else
      redis.call('HDEL', leases, entries[i])
    end
  end
  return sum, of_id
end

-- The arguments of reservePermit, and those of SharedTokenBuckets.lease. Returns the number of granted permits, the wait, and the
-- stored arrival time.
function own.leasePermits(
  _, key, leases, per_second, burst, max_wait, longest_ahead, wanted, lease_ms, id, held, returned, immediate
)
  local now = clock()
  leases, wanted, lease_ms = KEYS[tonumber(leases)], tonumber(wanted), tonumber(lease_ms)
  local interval, tolerance, arrival = read_bucket(key, now, per_second, burst, max_wait, longest_ahead)
  local leased, of_id = read_leases(leases, now, lease_ms, id)
  arrival = math.max(arrival, now + leased * interval) -- the bucket holds at most the permits that are not leased
  if id then arrival = arrival - math.min(returned, math.max(0, of_id - held)) * interval end -- none if the lease has ended
  local wait, granted = math.max(0, arrival - tolerance - now), 0
  if wait == 0 then
    granted = math.max(0, math.min(wanted, math.floor((tolerance - (arrival - now)) / interval + 1 + 1e-6)))
  elseif wanted > 0 and wait <= tonumber(max_wait) then
    granted = 1
  end
  arrival = arrival + granted * interval
  local stored = write_bucket(key, now, arrival)
  if id then
    local count = held + (wait == 0 and math.max(0, granted - immediate) or 0)
    if count > 0 then
      redis.call('HSET', leases, id, count .. ' ' .. string.format('%.17g', now + lease_ms))
      redis.call('PEXPIRE', leases, lease_ms)
    else
      redis.call('HDEL', leases, id)
    end
  end
  return {granted, string.format('%.17g', wait), stored}
end

-- after: what leasePermits has stored. Returns 0 or 1.
function own.returnPermit(_, key, per_second, after)
  if redis.call('GET', key) ~= after then return 0 end
  write_bucket(key, clock(), tonumber(after) - 1000 / per_second)
  return 1
end
`;

/**
 * KEYS: the key of each command, then the second keys. ARGV: the number of commands, and for each command its name, the number of
 * its arguments, and the arguments.
 *
 * Returns a result or an error for each command, so that an error of one does not affect the others. Stops once the results
 * exceed the bound; commands without a result were not executed.
 */
const batchScript = `
local position = 0
local function next_arg()
  position = position + 1
  return ARGV[position]
end

local results, length = {}, 0
for i = 1, tonumber(next_arg()) do
  local key = KEYS[i]
  if length > ${maxCharacters} then break end
  local command, args = next_arg(), {}
  for n = 1, tonumber(next_arg()) do args[n] = next_arg() end
  local ok, result = pcall(own[command] or redis.call, command, key, unpack(args))
  if not ok and type(result) == 'string' then result = redis.error_reply(result) end -- plain text is not an error reply
  results[i] = result
  if type(result) == 'string' then length = length + #result end
end
return results
`;

/** The script on any clock. @param clock Lua that returns the time in milliseconds */
export const scriptWithClock = (clock: string): string => `
local function clock() ${clock} end
${ownCommands}${batchScript}`;

const redisClock = "local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000";

export const batchLua: string = scriptWithClock(redisClock);
