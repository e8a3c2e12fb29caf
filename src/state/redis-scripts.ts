/** What Redis does in one step for us: two scripts in Lua, each on one key. Redis loads them again after a restart. */

/** KEYS: key. ARGV: expected value, new value, and its time to live in ms unless it is to stay for ever. Returns 0 or 1. */
const replaceIfUnchanged = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
`;

/**
 * `reserveTurn` of token-bucket.ts, line by line, on the clock of Redis: no instance's clock matters.
 *
 * KEYS: bucket. ARGV: turns a second, turns it holds, longest wait in ms. Returns two numbers as text, for numbers lose
 * their fraction on the way out: the wait in ms, and how far the bucket's arrival time then lies ahead. Nothing is booked
 * if the wait is longer than the longest. 17 digits carry a double whole. The key lives until the bucket is full again.
 *
 * What is no number, or lies further ahead than any settings bring it (300 years: a million turns at one an hour, and a
 * wait), is not ours, and counts as none: else a bucket would stay shut for ever, or hold nothing back at all.
 */
const reserveTurnAt = `
local interval = 1000 / ARGV[1]
local tolerance = math.max(0, ARGV[2] - 1) * interval
local known = tonumber(redis.call('GET', KEYS[1]) or now)
local arrival = now
if known and known > now and known < now + 1e13 then arrival = known end
local wait = math.max(0, arrival - tolerance - now)
if wait <= tonumber(ARGV[3]) then
  arrival = arrival + interval
  redis.call('SET', KEYS[1], string.format('%.17g', arrival), 'PX', math.max(1, math.ceil(arrival - now)))
end
return {string.format('%.17g', wait), string.format('%.17g', arrival - now)}
`;

/** The bucket's script on any clock. @param now Lua that yields the time in milliseconds */
export const bucketScript = (now: string): string => `${now}\n${reserveTurnAt}`;

const redisClock = "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + time[2] / 1000";

/** The scripts by the names under which the client knows them; redis.ts says their types. */
export const scripts = {
  replaceIfUnchanged: { numberOfKeys: 1, lua: replaceIfUnchanged },
  reserveTurn: { numberOfKeys: 1, lua: bucketScript(redisClock) },
} as const;
