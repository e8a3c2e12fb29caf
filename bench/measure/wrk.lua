-- What wrk sends, and how it counts. Arguments: METHOD BODY RUN; a POST bears a new X-Request-ID each time.

local head, tail
local count = 0

function init(args)
  wrk.method = args[1]
  if wrk.method == "POST" then
    wrk.body = args[2]
    wrk.headers["X-Request-ID"] = "@id@"
    local whole = wrk.format()
    local first, last = whole:find("@id@", 1, true)
    head, tail = whole:sub(1, first - 1), whole:sub(last + 1)
    local run = args[3]
    request = function()
      count = count + 1
      return head .. string.format("%s-0000-4000-8000-%012x", run, count) .. tail
    end
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
