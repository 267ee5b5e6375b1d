-- Cron expressions. The model finds the same by looking at one minute after the other.
_G.redis = {} -- which is not called here
local cron = require "jqlua.schedules.cron"
local zones = require "jqlua.schedules.zones"

local utc = zones.parse("UTC0")

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
  return (((days + day - 1) * 24 + hour) * 60 + minute) * 60000
end

local function shown(moment)
  return moment and (os.date("!%Y-%m-%d %H:%M:%S", moment / 1000):gsub(":00$", ""))
end

describe("a cron expression #once", function()
  local function following(text, after, count)
    local parsed = assert(cron.parse(text))
    local found, at = {}, ms(after)
    for i = 1, count do
      at = cron.next(parsed, at, utc)
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
    { "the first of several days after the one before", "30 8 10,20 * *", "2024-05-05 09:00", { "2024-05-10 08:30",
      "2024-05-20 08:30", "2024-06-10 08:30" } },
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
    { "the time before 1970", "0 0 1 1 *", "1970-01-01 00:00", { "1971-01-01 00:00" } },
  }
  for _, case in ipairs(cases) do
    it("names " .. case[1], function()
      assert.are.same(case[4], following(case[2], case[3], #case[4]))
    end)
  end


  describe("where clocks are changed", function()
    local berlin = zones.parse("CET-1CEST,M3.5.0,M10.5.0/3")

    --- Its moments between two.
    local function shown_all(text, from, to)
      local parsed, found = assert(cron.parse(text)), {}
      local at = cron.next(parsed, ms(from) - 1, berlin)
      while at <= ms(to) do
        found[#found + 1] = shown(at)
        at = cron.next(parsed, at, berlin)
      end
      return found
    end

    it("knows changes that the hours of their rules bring into the next year", function()
      local zone, parsed = zones.parse("AAA0BBB,M12.5.0/120,M12.5.0/144"), assert(cron.parse("0 5 * * *"))
      local at, found = ms("2024-12-31 05:00"), {}
      for i = 1, 4 do
        at = cron.next(parsed, at, zone)
        found[i] = shown(at)
      end
      assert.are.same({ "2025-01-01 05:00", "2025-01-02 05:00", "2025-01-03 04:00", "2025-01-04 05:00" }, found)
    end)
    it("names a time once that comes twice, the first", function()
      assert.are.same({ "2024-10-26 00:30", "2024-10-27 00:30", "2024-10-28 01:30" },
        shown_all("30 2 * * *", "2024-10-26 00:00", "2024-10-28 12:00"))
    end)
    it("names the change for a time that is skipped", function()
      assert.are.same({ "2024-03-30 01:30", "2024-03-31 01:00", "2024-04-01 00:30" },
        shown_all("30 2 * * *", "2024-03-30 00:00", "2024-04-01 12:00"))
    end)
  end)
end)
