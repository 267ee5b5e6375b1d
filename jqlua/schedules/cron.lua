-- Cron expressions: parsing, and their times. `next` says what happens when clocks are put forward or back.
local check = require "jqlua.base.check"
local zones = require "jqlua.schedules.zones"

local M = {}

local floor = math.floor

local DAY = 86400
local MOST_BYTES = 1000
-- Any time that ever comes does so within 40 years: a 29th of February on a given weekday, across a century.
local MOST_YEARS = 41

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

--- Adds one entry of a field's list.
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

--- The first minute of a day from one on that its hour and minute fit.
---@return number? minute_of_day
local function minute_from(cron, from)
  for hour = floor(from / 60), 23 do
    for minute = math.max(from - hour * 60, 0), cron.hours[hour] and 59 or -1 do
      if cron.minutes[minute] then
        return hour * 60 + minute
      end
    end
  end
end

---@param first number days since 1970 of the month's first
local function has_day(cron, first, day)
  local is_day = cron.days[day] or false
  if is_day == cron.is_either then
    return is_day -- that decides
  end
  return cron.weekdays[(first + day + 3) % 7] -- 1970 began on a Thursday
end

--- The first local time at or after another.
---@param from number seconds, as the clock shows them
---@return number? at
local function at_clock(cron, from)
  local days = floor(from / DAY)
  local year, month, day = zones.date_of(days)
  local minute, end_year = math.ceil((from - days * DAY) / 60), year + MOST_YEARS
  while year < end_year do
    if cron.months[month] then
      local first = zones.days_of(year, month, 1)
      for at = day, zones.days_in(year, month) do
        local found = has_day(cron, first, at) and minute_from(cron, minute)
        if found then
          return (first + at - 1) * DAY + found * 60
        end
        minute = 0
      end
    end
    repeat
      month = month % 12 + 1
      year = month == 1 and year + 1 or year
    until cron.months[month]
    day, minute = 1, 0
  end
end

--- From when on times count in a part of a zone's time: repeated local times do not run twice at fixed times of day.
local function counts_from(cron, part)
  return cron.is_any and part.begins or part.begins + math.max(0, part.before - part.offset)
end

--- Whether the clocks, put forward where this part begins, skipped a time that therefore runs at its beginning.
local function makes_up(cron, part)
  if cron.is_any or part.before >= part.offset then
    return false
  end
  return at_clock(cron, part.begins + part.before) < part.begins + part.offset
end

--- The first time after another.
---@param cron table as returned by parse
---@param after_ms number
---@param zone table
---@return number ms
function M.next(cron, after_ms, zone)
  local from = floor(after_ms / 1000) + 1
  local is_first = true
  while true do
    local part = zones.part(zone, from)
    if from == part.begins and makes_up(cron, part) then
      return from * 1000
    end
    local at_s = at_clock(cron, math.max(from, counts_from(cron, part)) + part.offset) - part.offset
    if at_s < part.ends then
      return at_s * 1000
    end
    -- No time matches before at_s in the following parts, so they are skipped; but behind the first part local times
    -- before `from` may come again.
    from = math.max(part.ends, is_first and 0 or at_s - 2 * DAY)
    is_first = false
  end
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
    minutes = sets[1], hours = sets[2], days = sets[3], months = sets[4], weekdays = sets[5],
    is_either = texts[3]:sub(1, 1) ~= "*" and texts[5]:sub(1, 1) ~= "*",
    is_any = texts[1]:sub(1, 1) == "*" or texts[2]:sub(1, 1) == "*", -- runs at no fixed time of day
  }
  if not at_clock(cron, 0) then
    return nil, "there is no such day"
  end
  return cron
end

return M
