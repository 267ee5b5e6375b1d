-- Numbers, times and names as sentences of alerts have them.
local M = {}

local UNITS = { { 86400, "d" }, { 3600, "h" }, { 60, "min" } }

--- A duration in its largest unit of which there are two.
---@param ms number
---@return string
function M.span(ms)
  local seconds = math.floor(ms / 1000 + 0.5)
  if ms < 1000 then
    return string.format("%.0f ms", ms)
  end
  for _, unit in ipairs(UNITS) do
    if seconds >= 2 * unit[1] then
      return string.format("%d %s", math.floor(seconds / unit[1]), unit[2])
    end
  end
  return string.format("%d s", seconds)
end

--- So many of something, with commas between thousands.
---@param what string in the singular, which `s` makes plural
---@return string
function M.count(value, what)
  local text, count = string.format("%.0f", value), 1
  while count > 0 do
    text, count = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  end
  return text .. " " .. what .. (value == 1 and "" or "s")
end

--- How many jobs wait.
---@return string
function M.waiting(value)
  return M.count(value, "job") .. (value == 1 and " waits" or " wait")
end

---@param share number
---@return string
function M.percent(share)
  local percent = share * 100
  return string.format(percent > 0 and percent < 10 and "%.1f %%" or "%.0f %%", percent)
end

--- A name in a sentence: quoted where blanks could be overlooked.
---@return string
function M.name(text)
  local is_odd = text:find("^%s") or text:find("%s$") or text:find("  ", 1, true)
  return is_odd and '"' .. text .. '"' or text
end

return M
