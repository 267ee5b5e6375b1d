-- The jobs that a call changes: by ids, or the next of those that `where` selects.
local check = require "jqlua.base.check"
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local find = require "jqlua.find.find"
local jobs = require "jqlua.job.jobs"
local filter = require "jqlua.find.filter"

local M = {}

local COUNT = 100

--- Checks the fields ids, where, cursor and count.
---@return table? selection {ids} or {where, at, count}
---@return string? problem
local function parse(spec)
  if spec.where == nil then
    for _, field in ipairs({ "cursor", "count" }) do
      if spec[field] ~= nil then
        return nil, "INVALID " .. field .. ": only valid with where"
      end
    end
    local problem = arguments.check_ids(spec.ids)
    return not problem and { ids = spec.ids } or nil, problem
  elseif spec.ids ~= nil then
    return nil, "INVALID ids: expected either ids or where, got both"
  end
  local where, problem = filter.parse(spec.where)
  local at
  if where then
    at, problem = find.parse(spec, where)
  end
  if not at then
    return nil, problem
  end
  return { where = where, at = at, count = spec.count or COUNT, begun_ms = find.begun_ms(at) }
end

--- Opens the namespace and reads the spec of an operator who changes jobs.
---@param more? string further fields of the spec
---@return table spec
---@return table selection
function M.spec(more)
  local spec = arguments.operators("ids where cursor count" .. (more and " " .. more or ""))
  local selected, problem = parse(spec)
  check.refuse(problem)
  return spec, selected
end

--- Changes each selected job.
---@param letters string states that `where` selects from
---@param change fun(job: table): string, boolean? answer for the job, and whether it changed
---@return table reply an answer for each id; or {cursor, changed}
---@return number changed
function M.each(selection, letters, change)
  local changed = 0
  if selection.ids then
    local answers = {}
    for i, id in ipairs(selection.ids) do
      local job, is_changed = jobs.read(id), nil
      answers[i] = "NOTFOUND"
      if job then
        answers[i], is_changed = change(job)
      end
      changed = changed + (is_changed and 1 or 0)
    end
    return answers, changed
  end
  local cursor = find.page(selection.where, selection.at, {
    count = selection.count, letters = letters,
    take = function(job)
      local price = budget.of_job(job)
      local _, is_changed = change(job)
      budget.pay(2 * math.max(price, budget.of_job(job)))
      if is_changed then
        changed = changed + 1
      end
    end,
  })
  return { cursor, changed }, changed
end

return M
