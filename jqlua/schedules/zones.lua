-- Dates, and time zones: how far clocks are ahead of UTC, and when they are put forward and back. A zone is a rule in
-- the format of POSIX TZ, with the hours of RFC 8536 (-167 to 167), and days as M3.5.0 alone: Redis knows no zones by
-- name.
local check = require "jqlua.base.check"

local M = {}

M.UTC = "UTC0"

local floor = math.floor
local huge = math.huge

local DAY = 86400
local MOST_BYTES = 100
local EXPECTED = "a rule as of POSIX' TZ, such as CET-1CEST,M3.5.0,M10.5.0/3"

-- Dates and days since 1970, by arithmetic alone, in the proleptic Gregorian calendar ---------------------------------

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

local SIZES = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

---@return number
function M.days_in(year, month)
  local is_leap = month == 2 and year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return is_leap and 29 or SIZES[month]
end

-- Zones ---------------------------------------------------------------------------------------------------------------

--- Parses `[+-]h[h[h]][:mm[:ss]]` at the beginning of a text.
---@return number? seconds
---@return string rest
local function take_time(text, most_hours)
  local sign, hours, rest = text:match("^([+-]?)(%d%d?%d?)(.*)$")
  if not hours or tonumber(hours) > most_hours then
    return nil, text
  end
  local seconds = tonumber(hours) * 3600
  for _, unit in ipairs({ 60, 1 }) do
    local value, more = rest:match("^:([0-5]%d)(.*)$")
    if not value then
      break
    end
    seconds, rest = seconds + tonumber(value) * unit, more
  end
  return sign == "-" and -seconds or seconds, rest
end

--- Parses a zone's name and offset.
---@return number? offset seconds ahead of UTC
---@return string rest
local function take_zone(text, default)
  local rest = text:match("^%a%a%a+(.*)$") or text:match("^<[%w+-]+>(.*)$")
  if not rest then
    return nil, text
  end
  local west, behind = take_time(rest, 24)
  return west and -west or default, behind
end

--- Parses `,` and a day of the year, optionally with a time.
---@return table? day {month, week, weekday, at seconds}
---@return string rest
local function take_day(text)
  local month, week, weekday, rest = text:match("^,M(%d%d?)%.([1-5])%.([0-6])(.*)$")
  month = tonumber(month)
  if not month or month < 1 or month > 12 then
    return nil, text
  end
  local day = { month = month, week = tonumber(week), weekday = tonumber(weekday), at = 7200 }
  if rest:sub(1, 1) == "/" then
    day.at, rest = take_time(rest:sub(2), 167)
  end
  return day.at and day or nil, rest
end

---@param text any
---@return table? zone {standard seconds ahead of UTC, summer?, from?, to? days; and changes, by year, once found}
---@return string? problem
function M.parse(text)
  local problem = "expected " .. EXPECTED .. ", got " .. check.show(text)
  if type(text) ~= "string" or #text > MOST_BYTES then
    return nil, problem
  end
  local zone, rest = {}, text
  zone.standard, rest = take_zone(rest)
  if zone.standard and rest ~= "" then
    zone.summer, rest = take_zone(rest, zone.standard + 3600)
    zone.from, rest = take_day(rest)
    zone.to, rest = take_day(rest)
    if not (zone.summer and zone.from and zone.to) then
      return nil, problem
    end
  end
  if not zone.standard or rest ~= "" then
    return nil, problem
  end
  return zone
end

--- Seconds since 1970, as clocks show them, of a rule's day.
local function clock_of(day, year)
  local first = M.days_of(year, day.month, 1)
  local behind = first + M.days_in(year, day.month)
  -- 1970 began on a Thursday.
  local at = first + (day.weekday - first - 4) % 7 + 7 * (day.week - 1)
  while at >= behind do
    at = at - 7
  end
  return at * DAY + day.at
end

--- The changes of clocks around a year: { at seconds since 1970, offset from then on }. Hours of a rule may bring
--- those of a year into the one before or behind.
local function changes(zone, year)
  local list = zone[year] or {}
  if not list[1] then
    for changing_year = year - 2, year + 2 do
      list[#list + 1] = { clock_of(zone.from, changing_year) - zone.standard, zone.summer }
      list[#list + 1] = { clock_of(zone.to, changing_year) - zone.summer, zone.standard }
    end
    table.sort(list, function(a, b)
      return a[1] < b[1]
    end)
    zone[year] = list
  end
  return list
end

--- The period around a time in which clocks are not changed.
---@param at number seconds since 1970
---@return table part {offset seconds, begins, ends seconds since 1970, before, offset before it began}
function M.part(zone, at)
  if not zone.summer or zone.summer == zone.standard then
    return { offset = zone.standard, before = zone.standard, begins = -huge, ends = huge }
  end
  local year = M.date_of(floor((at + zone.standard) / DAY))
  local part
  for _, change in ipairs(changes(zone, year)) do
    if change[1] > at then
      part.ends = change[1]
      return part
    end
    part = { begins = change[1], offset = change[2], before = (part or { offset = change[2] }).offset, ends = huge }
  end
  return part
end

return M
