-- Counts of values.

local M = {}

---@param seen table value -> times
---@param times? number default 1
function M.add(seen, value, times)
  seen[value] = (seen[value] or 0) + (times or 1)
end

--- The most frequent values, as [value, times]; with equal counts in order of the value.
---@param seen table
---@param most number
---@return table[]
function M.most(seen, most)
  local list = {}
  for value, times in pairs(seen) do
    list[#list + 1] = { value, times }
  end
  table.sort(list, function(a, b)
    return a[2] > b[2] or a[2] == b[2] and a[1] < b[1]
  end)
  for i = #list, most + 1, -1 do
    list[i] = nil
  end
  return list
end

return M
