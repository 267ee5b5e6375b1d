-- Cron expressions, against a search that looks at one minute after the other.
local cron = require "jqlua.schedules.cron"
local zone = require "jqlua.schedules.zones"

math.randomseed(os.time())

local MINUTE_MS, DAY_MS = 60000, 86400000

--- A moment from a text such as 2024-02-29 12:30.
local function ms(text)
  local year, month, day, hour, minute = text:match("^(%d+)-(%d+)-(%d+) (%d+):(%d+)$")
  local days = 0
  for past = 1970, year - 1 do
    days = days + ((past % 4 == 0 and past % 100 ~= 0 or past % 400 == 0) and 366 or 365)
  end
  local lengths = { 31, (year % 4 == 0 and year % 100 ~= 0 or year % 400 == 0) and 29 or 28, 31, 30, 31, 30, 31, 31, 30,
    31, 30, 31 }
  for past = 1, month - 1 do
    days = days + lengths[past]
  end
  return (((days + day - 1) * 24 + hour) * 60 + minute) * MINUTE_MS
end

local function shown(moment)
  return moment and (os.date("!%Y-%m-%d %H:%M:%S", moment / 1000):gsub(":00$", ""))
end

-- The naive reading ---------------------------------------------------------------------------------------

local NAMES = {
  jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10, nov = 11, dec = 12,
  sun = 0, mon = 1, tue = 2, wed = 3, thu = 4, fri = 5, sat = 6,
}

--- Whether a value is one of those that a field's text names.
local function is_named(text, value, low, high)
  for entry in text:lower():gmatch("[^,]+") do
    local first, last = low, high
    local range, n = entry:match("^(.*)/(%d+)$")
    local step = tonumber(n or 1)
    range = range or entry
    if range ~= "*" then
      local a, b = range:match("^(.*)-(.*)$")
      first = NAMES[a or range] or tonumber(a or range)
      last = b and (NAMES[b] or tonumber(b)) or n and high or first
      if b and last < first and high == 7 and last == 0 then
        last = 7
      end
    end
    if value >= first and value <= last and (value - first) % step == 0 then
      return true
    end
  end
  return false
end

local function is_day(fields, noon_s)
  local date = os.date("!*t", noon_s)
  local weekday = date.wday - 1
  local by_day = is_named(fields[3], date.day, 1, 31)
  local by_weekday = is_named(fields[5], weekday, 0, 7) or weekday == 0 and is_named(fields[5], 7, 0, 7)
  local either = fields[3]:sub(1, 1) ~= "*" and fields[5]:sub(1, 1) ~= "*"
  return is_named(fields[4], date.month, 1, 12) and (either and (by_day or by_weekday) or by_day and by_weekday)
end

local function split(text)
  local fields = {}
  for field in text:gmatch("%S+") do
    fields[#fields + 1] = field
  end
  return fields
end

--- All moments of an expression after one moment and before or at another, at most so many.
local function search(text, after_ms, until_ms, utc_offset, most)
  local fields = split(text)
  local minutes, hours, found = {}, {}, {}
  for value = 0, 59 do
    minutes[value] = is_named(fields[1], value, 0, 59)
    hours[value] = is_named(fields[2], value, 0, 23)
  end
  local shift = utc_offset * MINUTE_MS
  for day = math.floor((after_ms + shift) / DAY_MS), math.floor((until_ms + shift) / DAY_MS) do
    if is_day(fields, day * 86400 + 43200) then
      for hour = 0, 23 do
        for minute = 0, hours[hour] and 59 or -1 do
          local moment = day * DAY_MS + (hour * 60 + minute) * MINUTE_MS - shift
          if minutes[minute] and moment > after_ms and moment <= until_ms then
            found[#found + 1] = moment
            if #found == most then
              return found
            end
          end
        end
      end
    end
  end
  return found
end

-- Random expressions --------------------------------------------------------------------------------------

local RANGES = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12 }, { 0, 7 } }
local MONTHS = { "jan", "Feb", "MAR", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec" }
local DAYS = { [0] = "sun", "mon", "Tue", "wed", "thu", "fri", "SAT" }

local function random_value(i, value)
  local names = i == 4 and MONTHS or i == 5 and DAYS
  return names and names[value] and math.random(3) == 1 and names[value] or tostring(value)
end

local function random_entry(i)
  local low, high = RANGES[i][1], RANGES[i][2]
  local kind = math.random(6)
  if kind == 1 then
    return "*"
  elseif kind == 2 then
    return "*/" .. math.random(1, high)
  end
  local a, b = math.random(low, high), math.random(low, high)
  if kind == 3 then
    return random_value(i, math.min(a, b)) .. "-" .. random_value(i, math.max(a, b))
  elseif kind == 4 then
    return math.min(a, b) .. "-" .. math.max(a, b) .. "/" .. math.random(1, high)
  elseif kind == 5 then
    return random_value(i, a) .. "/" .. math.random(1, high)
  end
  return random_value(i, a)
end

local function random_expression()
  local fields = {}
  for i = 1, 5 do
    local entries = {}
    for n = 1, math.random(3) == 1 and math.random(4) or 1 do
      entries[n] = random_entry(i)
    end
    fields[i] = math.random(3) == 1 and "*" or table.concat(entries, ",")
  end
  return table.concat(fields, " ")
end

-- ---------------------------------------------------------------------------------------------------------

describe("a cron expression #once", function()
  local function following(text, after, count, utc_offset)
    local parsed = assert(cron.parse(text))
    local found, at = {}, ms(after)
    for i = 1, count do
      at = cron.next(parsed, at, zone.fixed((utc_offset or 0) * 60))
      found[i] = shown(at)
    end
    return found
  end

  local cases = {
    { "every minute", "* * * * *", "2023-12-31 23:58",
      { "2023-12-31 23:59", "2024-01-01 00:00", "2024-01-01 00:01" } },
    { "each quarter of an hour", "*/15 * * * *", "2024-05-05 05:14",
      { "2024-05-05 05:15", "2024-05-05 05:30", "2024-05-05 05:45", "2024-05-05 06:00" } },
    { "from a minute on", "40/15 8 * * *", "2024-05-05 00:00", { "2024-05-05 08:40", "2024-05-05 08:55",
      "2024-05-06 08:40" } },
    { "a step within a range", "0 9-17/4 * * *", "2024-05-05 10:00", { "2024-05-05 13:00", "2024-05-05 17:00",
      "2024-05-06 09:00" } },
    { "lists", "5,35 0,12 * * *", "2024-05-05 00:05", { "2024-05-05 00:35", "2024-05-05 12:05", "2024-05-05 12:35",
      "2024-05-06 00:05" } },
    { "working days by name", "30 8 * * mon-fri", "2024-05-10 08:30", { "2024-05-13 08:30", "2024-05-14 08:30" } },
    { "the weekend by name", "0 8 * * sat-sun", "2024-05-10 08:30", { "2024-05-11 08:00", "2024-05-12 08:00",
      "2024-05-18 08:00" } },
    { "a range of Sunday alone", "0 8 * * 0-sun", "2024-05-10 08:30", { "2024-05-12 08:00", "2024-05-19 08:00" } },
    { "Sunday as 0", "0 0 * * 0", "2024-05-10 08:30", { "2024-05-12 00:00", "2024-05-19 00:00" } },
    { "Sunday as 7", "0 0 * * 7", "2024-05-10 08:30", { "2024-05-12 00:00", "2024-05-19 00:00" } },
    { "a range up to Sunday as 7", "0 0 * * 6-7", "2024-05-10 08:30", { "2024-05-11 00:00", "2024-05-12 00:00",
      "2024-05-18 00:00" } },
    { "months by name in any case", "0 0 1 JAN,jul,Oct *", "2024-05-10 08:30", { "2024-07-01 00:00",
      "2024-10-01 00:00", "2025-01-01 00:00" } },
    { "the 31st only where there is one", "0 0 31 * *", "2024-01-31 00:00", { "2024-03-31 00:00",
      "2024-05-31 00:00", "2024-07-31 00:00", "2024-08-31 00:00" } },
    { "either of two restricted days", "0 0 13 * fri", "2024-05-10 00:00", { "2024-05-13 00:00",
      "2024-05-17 00:00", "2024-05-24 00:00" } },
    { "both days, when the first begins with *", "0 0 */2 * fri", "2024-05-10 00:00", { "2024-05-17 00:00",
      "2024-05-31 00:00", "2024-06-07 00:00" } },
    { "both days, when the second begins with *", "0 0 13 * */7", "2024-05-10 00:00", { "2024-10-13 00:00",
      "2025-04-13 00:00" } },
    { "leap days", "0 0 29 2 *", "2024-02-29 00:00", { "2028-02-29 00:00", "2032-02-29 00:00" } },
    { "leap days across a century without one", "0 0 29 2 *", "2096-02-29 00:00", { "2104-02-29 00:00" } },
    { "leap days across a century with one", "0 0 29 2 *", "1996-02-29 00:00", { "2000-02-29 00:00",
      "2004-02-29 00:00" } },
    { "a leap day that is a Sunday", "0 0 29 2 */7", "2032-02-29 00:00", { "2060-02-29 00:00", "2088-02-29 00:00",
      "2128-02-29 00:00" } },
    { "no leap day where there is none", "0 0 28-31 2 *", "2023-02-27 00:00", { "2023-02-28 00:00",
      "2024-02-28 00:00", "2024-02-29 00:00", "2025-02-28 00:00" } },
    { "@hourly", "@hourly", "2024-05-05 10:00", { "2024-05-05 11:00" } },
    { "@daily", "@daily", "2024-05-05 10:00", { "2024-05-06 00:00" } },
    { "@midnight", "@midnight", "2024-05-05 10:00", { "2024-05-06 00:00" } },
    { "@weekly", "@weekly", "2024-05-05 10:00", { "2024-05-12 00:00" } },
    { "@monthly", "@Monthly", "2024-05-05 10:00", { "2024-06-01 00:00" } },
    { "@yearly", "@yearly", "2024-05-05 10:00", { "2025-01-01 00:00" } },
    { "@annually", "@annually", "2024-05-05 10:00", { "2025-01-01 00:00" } },
    { "blanks and tabs around fields", "  0\t12  * *  * ", "2024-05-05 10:00", { "2024-05-05 12:00" } },
    { "numbers with a zero in front", "05 08 01 * *", "2024-05-05 10:00", { "2024-06-01 08:05" } },
    { "seconds, when there are six fields", "15,45 30 2 * * *", "2024-05-05 10:00", { "2024-05-06 02:30:15",
      "2024-05-06 02:30:45", "2024-05-07 02:30:15" } },
    { "steps of seconds", "*/20 * * * * *", "2024-05-05 10:00", { "2024-05-05 10:00:20", "2024-05-05 10:00:40",
      "2024-05-05 10:01", "2024-05-05 10:01:20" } },
    { "the time before 1970", "0 0 1 1 *", "1970-01-01 00:00", { "1971-01-01 00:00" } },
  }
  for _, case in ipairs(cases) do
    it("names " .. case[1], function()
      assert.are.same(case[4], following(case[2], case[3], #case[4]))
    end)
  end

  it("is read on a clock ahead of UTC", function()
    assert.are.same({ "2024-02-29 22:30", "2024-03-31 22:30" }, following("0 4 1 * *", "2024-02-29 00:00", 2, 330))
    assert.are.same({ "2023-12-31 23:00" }, following("@yearly", "2023-06-01 00:00", 1, 60))
  end)
  it("is read on a clock behind UTC", function()
    assert.are.same({ "2024-02-01 05:00", "2024-03-01 05:00" }, following("@monthly", "2024-02-01 04:59", 2, -300))
    assert.are.same({ "1970-01-02 00:00" }, following("@daily", "1970-01-01 00:00", 1, -1440))
  end)
  it("names moments after the one given, within a minute, too", function()
    local parsed = cron.parse("* * * * *")
    assert.are.equal(60000, cron.next(parsed, 0, zone.fixed(0)))
    assert.are.equal(60000, cron.next(parsed, 59999, zone.fixed(0)))
    assert.are.equal(120000, cron.next(parsed, 60000, zone.fixed(0)))
  end)

  it("names what a search minute by minute finds", function()
    local found_any = 0
    for _ = 1, 400 do
      local text = random_expression()
      local utc_offset = math.random(3) == 1 and math.random(-1440, 1440) or 0
      local after = math.random(0, 2 ^ 31 - 2) * 1000 + math.random(0, 999)
      local parsed = cron.parse(text)
      local expected = search(text, after, after + 800 * DAY_MS, utc_offset, 4)
      for i = 1, math.max(1, #expected) do
        local found = parsed and cron.next(parsed, expected[i - 1] or after, zone.fixed(utc_offset * 60))
        if expected[i] or found and found <= after + 800 * DAY_MS then
          assert.are.equal(shown(expected[i]), shown(found), text .. " with " .. utc_offset .. " after " .. after)
          found_any = found_any + 1
        end
      end
    end
    assert.is_true(found_any > 500)
  end)
  it("finds the last moments, as a search minute by minute does", function()
    for _ = 1, 200 do
      local text = random_expression()
      local utc_offset = math.random(-1440, 1440)
      local until_ms = math.random(2 ^ 30, 2 ^ 31 - 2) * 1000 + math.random(0, 999)
      local all = search(text, until_ms - math.random(1, 90) * DAY_MS, until_ms, utc_offset)
      if all[1] then
        local parsed = assert(cron.parse(text))
        for _, n in ipairs({ 1, 2, 3, 10, 1000, #all, #all + 1, math.random(1, #all) }) do
          local found = cron.last(parsed, all[1], until_ms, zone.fixed(utc_offset * 60), n)
          assert.are.equal(shown(all[math.max(1, #all - n + 1)]), shown(found), text .. " " .. n .. " " .. until_ms)
        end
      end
    end
  end)

  describe("where clocks are changed", function()
    local berlin = zone.parse("CET-1CEST,M3.5.0,M10.5.0/3")

    --- Its moments between two.
    local function all(text, from, to)
      local parsed, found = assert(cron.parse(text)), {}
      local at = cron.next(parsed, ms(from) - 1, berlin)
      while at <= ms(to) do
        found[#found + 1] = at
        at = cron.next(parsed, at, berlin)
      end
      return found
    end

    local function shown_all(...)
      local texts = {}
      for i, at in ipairs(all(...)) do
        texts[i] = shown(at)
      end
      return texts
    end

    it("names a time once that comes twice, the first", function()
      assert.are.same({ "2024-10-26 00:30", "2024-10-27 00:30", "2024-10-28 01:30" },
        shown_all("30 2 * * *", "2024-10-26 00:00", "2024-10-28 12:00"))
    end)
    it("names each hour of those that come twice", function()
      assert.are.same({ "2024-10-27 00:30", "2024-10-27 01:30", "2024-10-27 02:30" },
        shown_all("30 * * * *", "2024-10-27 00:00", "2024-10-27 03:00"))
    end)
    it("names the change for a time that is skipped", function()
      assert.are.same({ "2024-03-30 01:30", "2024-03-31 01:00", "2024-04-01 00:30" },
        shown_all("30 2 * * *", "2024-03-30 00:00", "2024-04-01 12:00"))
    end)
    it("names nothing for an hour that is skipped, where each one counts", function()
      assert.are.same({ "2024-03-31 00:30", "2024-03-31 01:30", "2024-03-31 02:30" },
        shown_all("30 * * * *", "2024-03-31 00:00", "2024-03-31 03:00"))
    end)
    it("finds the last moments among these", function()
      for _, text in ipairs({ "30 2 * * *", "0,30 2,3 * * *", "0 1-3 * * *", "30 * * * *", "*/20 2 * * *" }) do
        for _, days in ipairs({ { "2024-03-29", "2024-04-02" }, { "2024-10-25", "2024-10-29" } }) do
          local begins, ends = days[1] .. " 00:00", days[2] .. " 00:00"
          local found = all(text, begins, ends)
          for n = 1, #found do
            local last = cron.last(assert(cron.parse(text)), found[1], ms(ends), berlin, n)
            assert.are.equal(shown(found[#found - n + 1]), shown(last), text .. " " .. n)
          end
        end
      end
    end)
  end)
end)
