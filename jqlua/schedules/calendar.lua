-- Dates and days since 1970, by arithmetic alone, in the proleptic Gregorian calendar.
local M = {}

local floor = math.floor

--- Days since 1970 of a date.
function M.days_of(year, month, day)
  -- Years begin in March here, so that the leap day is the last.
  local shifted = month <= 2 and year - 1 or year
  local era = floor(shifted / 400)
  local of_era = shifted - era * 400
  local of_year = floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  return era * 146097 + of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + of_year - 719468
end

---@return number year
---@return number month
---@return number day
function M.date_of(days)
  local shifted = days + 719468
  local era = floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
  local month = floor((5 * of_year + 2) / 153)
  local day = of_year - floor((153 * month + 2) / 5) + 1
  month = month < 10 and month + 3 or month - 9
  year = year + era * 400 + (month <= 2 and 1 or 0)
  return year, month, day
end

---@return number year
---@return number month
function M.month_after(year, month)
  if month == 12 then
    return year + 1, 1
  end
  return year, month + 1
end

return M
