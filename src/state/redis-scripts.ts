/** What is asked of Redis in one breath, it does by one script in Lua. The client loads it again after a restart. */

/**
 * How much text goes to Redis in one question, and comes back, in characters. More would be late together, and whoever asks
 * for little with it.
 */
export const maxCharacters = 128 * 1024;

/**
 * Commands of our own, each by its name, its key and its words; `reserveTurn` is that of token-bucket.ts, line by line, on
 * the clock of Redis: no instance's clock matters.
 *
 * What stands in a bucket and is no number, or lies further ahead than any settings bring it (300 years: a million turns at
 * one an hour, and a wait), is not ours, and counts as none: else the bucket would stay shut for ever, or hold nothing back.
 */
const ownCommands = `
local own = {}

-- To be replaced, and by what; its time to live in ms, unless it is to stay for ever. Returns 0 or 1.
function own.replaceIfUnchanged(_, key, expected, value, ttl)
  if redis.call('GET', key) ~= expected then return 0 end
  if ttl then
    redis.call('SET', key, value, 'PX', ttl)
  else
    redis.call('SET', key, value)
  end
  return 1
end

-- Turns a second, turns the bucket holds, longest wait in ms. Returns the wait in ms, and how far the bucket's arrival
-- time then lies ahead, as text: numbers lose their fraction on the way out, and 17 digits carry a double whole.
-- Nothing is booked if the wait is longer than the longest. The key lives until the bucket is full again.
function own.reserveTurn(_, key, per_second, burst, longest_wait)
  local now = clock()
  local interval = 1000 / per_second
  local tolerance = math.max(0, burst - 1) * interval
  local known = tonumber(redis.call('GET', key) or now)
  local arrival = now
  if known and known > now and known < now + 1e13 then arrival = known end
  local wait = math.max(0, arrival - tolerance - now)
  if wait <= tonumber(longest_wait) then
    arrival = arrival + interval
    redis.call('SET', key, string.format('%.17g', arrival), 'PX', math.max(1, math.ceil(arrival - now)))
  end
  return {string.format('%.17g', wait), string.format('%.17g', arrival - now)}
end
`;

/**
 * KEYS: the key of each command. ARGV: of each its name, how many words follow, and these. Returns an answer or an error
 * for each: what one command does wrong is not for the others to suffer. It ends where the answers have become long: what
 * has no answer was not carried out.
 */
const batchScript = `
local place = 0
local function word()
  place = place + 1
  return ARGV[place]
end

local answers, long = {}, 0
for i, key in ipairs(KEYS) do
  if long > ${maxCharacters} then break end
  local command, words = word(), {}
  for n = 1, tonumber(word()) do words[n] = word() end
  local done, answer = pcall(own[command] or redis.call, command, key, unpack(words))
  if not done and type(answer) == 'string' then answer = redis.error_reply(answer) end -- a text alone is no error yet
  answers[i] = answer
  if type(answer) == 'string' then long = long + #answer end
end
return answers
`;

/** The script on any clock. @param clock Lua that yields the time in milliseconds */
export const scriptWithClock = (clock: string): string => `
local function clock() ${clock} end
${ownCommands}${batchScript}`;

const redisClock = "local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000";

/** The script by the name under which the client knows it; redis.ts says its type. */
export const scripts = { carryOut: { lua: scriptWithClock(redisClock) } } as const;
