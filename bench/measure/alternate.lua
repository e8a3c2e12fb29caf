-- Alternates between two requests by the clock, and counts them by window. Arguments: METHOD BODY RUN WINDOW PATH PATH NAME NAME
-- (WINDOW in milliseconds; NAME of an environment); a POST bears a new X-Request-ID each time.

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long nanoseconds; } penstock_time;
  int clock_gettime(int clock, penstock_time *time);
]]
local monotonic = 1
local time = ffi.new("penstock_time")
local heads, tails = {}, {}
local count = 0
local window, run
sent = {}

function init(args)
  run, window = args[3], tonumber(args[4])
  wrk.method = args[1]
  if wrk.method == "POST" then wrk.body = args[2] end
  for variant = 1, 2 do
    wrk.path = args[4 + variant]
    wrk.headers["Penstock-Environment"] = args[6 + variant]
    wrk.headers["X-Request-ID"] = "@id@"
    local whole = wrk.format()
    local first, last = whole:find("@id@", 1, true)
    heads[variant], tails[variant] = whole:sub(1, first - 1), whole:sub(last + 1)
  end
end

function request()
  ffi.C.clock_gettime(monotonic, time)
  local now = math.floor((tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1000000) / window)
  sent[now] = (sent[now] or 0) + 1
  count = count + 1
  local variant = now % 2 + 1
  return heads[variant] .. string.format("%s-0000-4000-8000-%012x", run, count) .. tails[variant]
end

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function done(summary)
  local errors = summary.errors
  local windows = {}
  for _, thread in ipairs(threads) do
    for at, requests in pairs(thread:get("sent")) do
      table.insert(windows, string.format("[%d,%d]", at, requests))
    end
  end
  io.write(string.format(
    '\n{"windows":[%s],"failed":%d}\n', table.concat(windows, ","),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
