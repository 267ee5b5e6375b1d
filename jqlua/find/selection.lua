-- The jobs that a call changes: by ids, or the next of those that `where` selects.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local find = require "jqlua.find.find"
local jobs = require "jqlua.job.jobs"
local filter = require "jqlua.find.filter"

local M = {}

local COUNT = 100

--- Opens the namespace and reads the spec of an operator who changes jobs.
---@param known table<string, table> its fields
---@return table spec
---@return table selection {ids} or {where, at, count, begun_ms}
function M.spec(known)
  local spec = arguments.spec(known)
  if not spec.where then
    fields.refuse(spec, "cursor count", "only valid with where")
    check.refuse(not spec.ids and check.problem("ids", "job ids, or where", nil))
    return spec, { ids = spec.ids }
  end
  check.refuse(spec.ids and "INVALID ids: expected either ids or where, got both")
  local where = filter.parse(spec.where)
  local at = find.parse(spec, where)
  return spec, { where = where, at = at, count = spec.count or COUNT, begun_ms = at.begun_ms }
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
