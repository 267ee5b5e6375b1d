---@lazy
-- Cron expressions: what they say, and which moments they name. Days are counted by arithmetic alone, in the proleptic
-- Gregorian calendar; a clock's offset from UTC is fixed, so there are no hours that are missing or come twice.
local check = require "jqlua.base.check"

local M = {}

local floor = math.floor

local DAY = 1440 -- minutes
local MOST_BYTES = 1000
-- Whatever comes at all comes within 40 years: a 29th of February on a given weekday, across a century's turn.
local MOST_MONTHS = 12 * 41

local FIELDS = {
  { "minute", 0, 59 },
  { "hour", 0, 23 },
  { "day of month", 1, 31 },
  { "month", 1, 12, { jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10,
    nov = 11, dec = 12 }, "jan-dec" },
  { "day of week", 0, 7, { sun = 0, mon = 1, tue = 2, wed = 3, thu = 4, fri = 5, sat = 6 }, "sun-sat" },
}

local MACROS = {
  ["@hourly"] = "0 * * * *", ["@daily"] = "0 0 * * *", ["@midnight"] = "0 0 * * *", ["@weekly"] = "0 0 * * 0",
  ["@monthly"] = "0 0 1 * *", ["@yearly"] = "0 0 1 1 *", ["@annually"] = "0 0 1 1 *",
}

local function number(text, field)
  local value = field[4] and field[4][text] or text:find("^%d%d?$") and tonumber(text)
  return value and value >= field[2] and value <= field[3] and value or nil
end

--- One entry of a field's list.
---@return boolean understood
local function add_entry(set, entry, field)
  local low, high = field[2], field[3]
  local range, step = entry:match("^([^/]+)/(%d%d?)$")
  step = step and tonumber(step)
  if step and (step < 1 or step > high) then
    return false
  end
  range = range or entry
  if range ~= "*" then
    local first, last = range:match("^([^-]+)-([^-]+)$")
    low = number(first or range, field)
    if first then
      high = number(last, field)
      if field[3] == 7 and high == 0 and low ~= 0 then
        high = 7 -- sat-sun
      end
    elseif not step then
      high = low
    end
    if not low or not high or low > high then
      return false
    end
  end
  for value = low, high, step or 1 do
    set[field[3] == 7 and value % 7 or value] = true
  end
  return true
end

---@return table? set values that are in it -> true
---@return string? problem
local function parse_field(text, field)
  local set = {}
  for entry in (text .. ","):gmatch("([^,]*),") do
    if not add_entry(set, entry, field) then
      local values = field[2] .. "-" .. field[3] .. (field[5] and " or " .. field[5] or "")
      return nil, field[1] .. " " .. check.show(text) .. " is not understood: expected *, values of " .. values
        .. ", ranges a-b, steps */n, a-b/n or a/n with n from 1 to " .. field[3] .. ", or a list of these with commas"
    end
  end
  return set
end

local function sorted(set, high)
  local list = {}
  for value = 0, high do
    if set[value] then
      list[#list + 1] = value
    end
  end
  return list
end

--- Days since 1970 of a date.
local function days_of(year, month, day)
  -- Years begin in March here, so that the leap day is the last.
  local shifted = month <= 2 and year - 1 or year
  local era = floor(shifted / 400)
  local of_era = shifted - era * 400
  local of_year = floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  return era * 146097 + of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + of_year - 719468
end

---@return number year, number month, number day
local function date_of(days)
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

--- How many of a day's times are no later than that minute of it.
local function times_until(cron, minute_of_day)
  local hour = floor(minute_of_day / 60)
  local minute = minute_of_day - hour * 60
  local count = 0
  for _, other in ipairs(cron.hours) do
    if other > hour then
      break
    elseif other < hour then
      count = count + #cron.minutes
    else
      for _, later in ipairs(cron.minutes) do
        if later > minute then
          break
        end
        count = count + 1
      end
    end
  end
  return count
end

---@param n number from 1
---@return number? minute_of_day the n-th time of a day
local function time_at(cron, n)
  local per_hour = #cron.minutes
  local hour = cron.hours[floor((n - 1) / per_hour) + 1]
  return hour and hour * 60 + cron.minutes[(n - 1) % per_hour + 1]
end

---@param first number days since 1970 of the month's first
local function has_day(cron, first, day)
  -- 1970 began on a Thursday.
  local is_weekday = cron.weekdays[(first + day + 3) % 7]
  if cron.is_either then
    return cron.days[day] or is_weekday
  end
  return cron.days[day] and is_weekday
end

--- The first moment after another.
---@param cron table as parse gives it
---@param after_ms number
---@param utc_offset number minutes
---@return number? ms
function M.next(cron, after_ms, utc_offset)
  local from = floor(after_ms / 60000) + 1 + utc_offset
  local days = floor(from / DAY)
  local year, month, day = date_of(days)
  local earlier = times_until(cron, from - days * DAY - 1)
  for _ = 1, MOST_MONTHS do
    local next_year, next_month = year, month + 1
    if next_month > 12 then
      next_year, next_month = year + 1, 1
    end
    if cron.months[month] then
      local first = days_of(year, month, 1)
      if day < cron.least_day then
        day, earlier = cron.least_day, 0
      end
      for at = day, days_of(next_year, next_month, 1) - first do
        local time = has_day(cron, first, at) and time_at(cron, earlier + 1)
        if time then
          return ((first + at - 1) * DAY + time - utc_offset) * 60000
        end
        earlier = 0
      end
    end
    year, month, day, earlier = next_year, next_month, 1, 0
  end
end

--- The first of the last n moments that are no later than another.
---@param from_ms number a moment; what is earlier does not count
---@param until_ms number not before from_ms
---@param n number
---@return number ms
function M.last(cron, from_ms, until_ms, utc_offset, n)
  local up_to = floor(until_ms / 60000) + utc_offset
  local days = floor(up_to / DAY)
  local year, month, day = date_of(days)
  local first_day = floor((from_ms / 60000 + utc_offset) / DAY)
  local times = times_until(cron, up_to - days * DAY)
  local all = #cron.hours * #cron.minutes
  repeat
    local first = days_of(year, month, 1)
    if cron.months[month] then
      for at = day, 1, -1 do
        if has_day(cron, first, at) then
          if times >= n then
            return math.max(from_ms, ((first + at - 1) * DAY + time_at(cron, times - n + 1) - utc_offset) * 60000)
          end
          n = n - times
        end
        times = all
      end
    end
    month, times = month - 1, all
    if month == 0 then
      year, month = year - 1, 12
    end
    day = first - days_of(year, month, 1)
  until first <= first_day
  return from_ms
end

---@param text any
---@return table? cron
---@return string? problem
function M.parse(text)
  if type(text) ~= "string" or #text > MOST_BYTES then
    return nil, "expected text of at most " .. MOST_BYTES .. " bytes, got " .. check.show(text)
  end
  text = text:lower():match("^%s*(.-)%s*$")
  if text:sub(1, 1) == "@" and not MACROS[text] then
    return nil, "expected @hourly, @daily, @weekly, @monthly or @yearly, got " .. check.show(text)
  end
  local texts, sets = {}, {}
  for field in (MACROS[text] or text):gmatch("%S+") do
    texts[#texts + 1] = field
  end
  if #texts ~= #FIELDS then
    return nil, "expected five fields (minute, hour, day of month, month, day of week), got " .. #texts
  end
  for i, field in ipairs(FIELDS) do
    local problem
    sets[i], problem = parse_field(texts[i], field)
    if not sets[i] then
      return nil, problem
    end
  end
  local cron = {
    minutes = sorted(sets[1], 59), hours = sorted(sets[2], 23), days = sets[3], months = sets[4], weekdays = sets[5],
    is_either = texts[3]:sub(1, 1) ~= "*" and texts[5]:sub(1, 1) ~= "*",
  }
  cron.least_day = cron.is_either and 1 or sorted(cron.days, 31)[1]
  if not M.next(cron, 0, 0) then
    return nil, "such a day never comes"
  end
  return cron
end

return M
