-- The first argument of finish: who finishes, and what is to be picked next.
local check = require "jqlua.base.check"
local memory = require "jqlua.base.memory"
local request = require "jqlua.life.request"
local wishes = require "jqlua.pick.wishes"
local workers = require "jqlua.workers.workers"

local M = {}

---@kept
-- Parsed first arguments of finish, by their bytes; if they end with a request, by the bytes before it.
local known = {}
---@kept
local known_with_token = {}

--- The first argument of finish.
---@param blob? string
---@return table? call {worker, is_registered, wish: as of wishes.parse, or nil}, not to be changed
---@return string? problem
---@return string|false|nil token request of its pick
function M.read(blob)
  local rest, token, calls
  if memory.LASTS and blob then
    rest, token = request.split(blob)
    calls = token and known_with_token or known
    local call = calls[rest]
    if call then
      return call, nil, token or call.wish and call.wish.request
    end
  end
  local spec = blob and check.map(blob)
  if not spec then
    return nil, check.not_a_map("spec", blob)
  end
  local problem = check.unknown_field(spec, "worker pick")
  if problem then
    return nil, problem
  elseif not check.is_name(spec.worker) then
    return nil, check.problem("worker", check.NAME, spec.worker)
  end
  local call = { worker = spec.worker, is_registered = workers.is_id(spec.worker) }
  if spec.pick ~= nil then
    if type(spec.pick) ~= "table" then
      return nil, check.problem("pick", "a map", spec.pick)
    end
    call.wish, problem = wishes.parse(spec.pick, "pick.", spec.worker)
    if problem then
      return nil, problem
    end
  end
  local request_token = call.wish and call.wish.request
  if calls and (not token or token == request_token) then
    memory.keep(calls, rest, call)
  end
  return call, nil, request_token
end

return M
