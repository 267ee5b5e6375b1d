-- What tests/protocol/worker.py asks of a worker:
-- python tests/protocol/worker.py --slots 1 --without sigterm lua5.1 examples/lua/checks.lua
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local jq = require "jq"
local socket = require "socket"

local handlers = {}

function handlers.echo(argument)
  return argument.value
end

function handlers.nap(argument, job)
  local deadline = socket.gettime() + argument.seconds
  while socket.gettime() < deadline do
    socket.sleep(math.min(0.2, math.max(0, deadline - socket.gettime())))
    job:beat()
  end
  return argument.seconds
end

function handlers.fail(argument)
  error(argument.text, 0)
end

function handlers.garble()
  error("no text: \255\254", 0)
end

jq.connect(os.getenv "JQ_URL", os.getenv "JQ_NAMESPACE"):work(handlers, { queues = "checks" })
