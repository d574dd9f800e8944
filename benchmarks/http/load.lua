-- The requests of wrk, and the checks of their responses.
--
-- Arguments: a file with complete requests (separated by NUL, with "0000000" as the placeholder of the id), the pause
-- before each request in milliseconds, and texts. If there are texts, each response must have status 200 and contain
-- all of them. This check reduces the speed of wrk by a third, so measured runs do without: there the status and the
-- number of bytes are compared.

local requests, turn, id, pause = {}, 0, 1000000, 0
local threads = {}
bad = 0
sample = ""

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for whole in (file:read("*a") .. "\0"):gmatch("([^%z]+)%z") do
    local parts, from = {}, 1
    for at, behind in whole:gmatch("()0000000()") do
      table.insert(parts, whole:sub(from, at - 1))
      from = behind
    end
    table.insert(parts, whole:sub(from))
    table.insert(requests, parts)
  end
  file:close()
  pause = tonumber(args[2])
  if pause > 0 then
    delay = function() return pause end
  end
  if #args > 2 then
    response = function(status, headers, body)
      local good = status == 200
      for index = 3, #args do
        good = good and body:find(args[index], 1, true) ~= nil
      end
      if not good then
        bad = bad + 1
        if sample == "" then sample = (status .. " " .. body):sub(1, 300) end
      end
    end
  end
end

-- Ids are unique, as a session requires, and have equal length, so that all requests and all responses have equal
-- length too.
function request()
  turn = turn % #requests + 1
  id = id + 1
  return table.concat(requests[turn], id)
end

function done(summary, latency)
  local wrong, example = 0, ""
  for _, thread in ipairs(threads) do
    wrong = wrong + thread:get("bad")
    if example == "" then example = thread:get("sample") end
  end
  local e = summary.errors
  -- One line, with fields separated by tabs.
  io.write("\n@", table.concat({
    summary.requests, summary.duration, summary.bytes, e.status, e.connect + e.read + e.write + e.timeout, wrong,
    latency:percentile(50), latency:percentile(99), latency.max, (example:gsub("%s", " "))
  }, "\t"), "\n")
end
