local plain = require "support.plain"

describe("glob, in plain Lua,", function()
  local glob = plain.module("base.glob")

  --- The plain meaning of a pattern.
  local function matches(pattern, name)
    if pattern == "" then
      return name == ""
    end
    local first = pattern:sub(1, 1)
    if first == "*" then
      for i = 1, #name + 1 do
        if matches(pattern:sub(2), name:sub(i)) then
          return true
        end
      end
      return false
    end
    return name:sub(1, 1) == first and matches(pattern:sub(2), name:sub(2))
  end

  it("knows a pattern by its *", function()
    assert.is_true(glob.is_pattern("*"))
    assert.is_true(glob.is_pattern("mail.*"))
    assert.is_false(glob.is_pattern("mail.de"))
    assert.is_false(glob.is_pattern("[a-z]?+-^$%"))
  end)
  it("takes everything but * for itself", function()
    for byte = 33, 255 do
      local character = string.char(byte)
      if character ~= "*" then
        assert.is_true(glob.match("a" .. character .. "*", "a" .. character .. "b"), character)
        assert.is_false(glob.match("a" .. character .. "*", "a"), character)
      end
    end
  end)
  it("matches what a plain reading matches, with magic characters", function()
    math.randomseed(7)
    local alphabet = { "a", "b", "*", "*", ".", "%", "[", "]", "^", "$", "-", "+", "?", "(", ")", "\195\188" }
    local function text(from)
      local parts = {}
      for i = 1, math.random(0, 6) do
        parts[i] = alphabet[math.random(from, #alphabet)]
      end
      return table.concat(parts)
    end
    for _ = 1, 20000 do
      local pattern = text(1)
      local name = text(1):gsub("%*", "")
      local built = pattern:gsub("%*", "ab")
      if matches(pattern, name) ~= glob.match(pattern, name) or not glob.match(pattern, built) then
        error("differs: " .. pattern .. " and " .. name .. " or " .. built)
      end
    end
  end)
end)

describe("check, in plain Lua,", function()
  local check = plain.module("base.check")

  describe("a name", function()
    --- UTF-8 by its definition: the code point, and that it took no more bytes than it needs.
    local function is_utf8(text)
      local i = 1
      while i <= #text do
        local lead = text:byte(i)
        local size = lead < 0x80 and 1 or lead < 0xC0 and 0 or lead < 0xE0 and 2 or lead < 0xF0 and 3
          or lead < 0xF8 and 4 or 0
        if size == 0 or i + size - 1 > #text then
          return false
        end
        local point = size == 1 and lead or lead % 2 ^ (7 - size)
        for j = i + 1, i + size - 1 do
          local byte = text:byte(j)
          if byte < 0x80 or byte > 0xBF then
            return false
          end
          point = point * 64 + byte % 64
        end
        local least = ({ 0, 0x80, 0x800, 0x10000 })[size]
        if point < least or point > 0x10FFFF or (point >= 0xD800 and point <= 0xDFFF) then
          return false
        end
        i = i + size
      end
      return true
    end

    local function agree(text)
      if is_utf8(text) ~= check.is_name(text) then
        error("differs: " .. table.concat({ text:byte(1, -1) }, " "), 2)
      end
    end

    it("of two bytes is UTF-8 or refused, whatever they are", function()
      for a = 128, 255 do
        for b = 32, 255 do
          if b ~= 127 then
            local text = string.char(a, b)
            agree(text)
          end
        end
      end
    end)
    it("of three and four bytes is UTF-8 or refused, at every edge", function()
      local edges = { 0x20, 0x7E, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF }
      for lead = 0xE0, 0xFF do
        for _, b in ipairs(edges) do
          for _, c in ipairs(edges) do
            agree(string.char(lead, b, c))
            for _, d in ipairs(edges) do
              agree(string.char(lead, b, c, d))
            end
          end
        end
      end
    end)
    it("of random bytes is UTF-8 or refused", function()
      math.randomseed(11)
      for _ = 1, 20000 do
        local bytes = {}
        for i = 1, math.random(1, 6) do
          bytes[i] = string.char(math.random(2) == 1 and math.random(32, 126) or math.random(128, 255))
        end
        agree(table.concat(bytes))
      end
    end)
    it("has 1 to 255 bytes", function()
      assert.is_false(check.is_name(""))
      assert.is_true(check.is_name(("x"):rep(255)))
      assert.is_false(check.is_name(("x"):rep(256)))
      assert.is_false(check.is_name(("\195\188"):rep(128)))
    end)
    it("has no control characters", function()
      for byte = 0, 31 do
        assert.is_false(check.is_name("a" .. string.char(byte)))
      end
      assert.is_false(check.is_name("a\127"))
    end)
    it("is text", function()
      for _, value in ipairs({ 1, true, false, {}, 0.5 }) do
        assert.is_false(check.is_name(value))
      end
      assert.is_false(check.is_name(nil))
    end)
  end)

  describe("a number", function()
    it("is within its bounds, both included", function()
      assert.is_true(check.is_number(0, 0, 1) and check.is_number(1, 0, 1))
      assert.is_false(check.is_number(-0.001, 0, 1) or check.is_number(1.001, 0, 1))
    end)
    it("is neither NaN nor infinite nor text", function()
      for _, value in ipairs({ 0 / 0, math.huge, -math.huge, "1", {}, true }) do
        assert.is_false(check.is_number(value, 0, 1e10))
        assert.is_false(check.is_integer(value, 0, 1e10))
      end
    end)
    it("is an integer when it has no fraction", function()
      assert.is_true(check.is_integer(5, 0, 10) and check.is_integer(-2147483648, -2147483648, 2147483647))
      assert.is_false(check.is_integer(5.5, 0, 10) or check.is_integer(11, 0, 10))
    end)
  end)

  describe("a list", function()
    it("has so many values and nothing else", function()
      assert.is_true(check.is_list({ 1, 2 }, 1, 2))
      assert.is_true(check.is_list({}, 0, 2))
      assert.is_false(check.is_list({}, 1, 2))
      assert.is_false(check.is_list({ 1, 2, 3 }, 1, 2))
      assert.is_false(check.is_list({ 1, x = 2 }, 1, 2))
      assert.is_false(check.is_list({ [2] = 1 }, 1, 2))
      assert.is_false(check.is_list("ab", 1, 2))
    end)
  end)

  describe("an id", function()
    it("is 14 hexadecimal digits in lower case", function()
      assert.is_true(check.is_id("0123456789abcd"))
      for _, value in ipairs({ "", "0123456789abc", "0123456789abcde", "0123456789ABCD", "0123456789abcg",
        "0123456789abc\n", 12345678901234, "{t}:meta234567" }) do
        assert.is_false(check.is_id(value))
      end
    end)
  end)

  describe("a suggestion", function()
    local KNOWN = "name queue priority max_retry keep_result"
    local function of(field)
      return check.unknown("jobs[0]", field, KNOWN)
    end

    it("is made for a letter too many, too few, wrong or swapped", function()
      for field, meant in pairs({ names = "name", nam = "name", nime = "name", quuee = "queue",
        Queue = "queue",
        PRIORITY = "priority", max_retrys = "max_retry", ["keep-result"] = "keep_result" }) do
        assert.are.equal("INVALID jobs[0]." .. field .. ": unknown field, did you mean " .. meant .. "?",
          of(field))
      end
    end)
    it("is not sought for a very long field, which is shown shortened", function()
      local message = of(("n"):rep(1000000))
      assert.is_true(#message < 250)
    end)
    it("shows bytes that are no text as question marks", function()
      assert.is_nil(of("a\0\255\r\nb"):find("[%z\1-\31\127-\255]"))
    end)
  end)

  describe("a value shown", function()
    it("is short whatever it is", function()
      assert.are.equal('"abc"', check.show("abc"))
      assert.are.equal('"' .. ("x"):rep(40) .. '" (1000 bytes)', check.show(("x"):rep(1000)))
      assert.are.equal("1.5", check.show(1.5))
      assert.are.equal("1700000000123456", check.show(1700000000123456))
      assert.are.equal("true", check.show(true))
      assert.are.equal("a list", check.show({ 1, 2 }))
      assert.are.equal("a map", check.show({ a = 1 }))
      assert.are.equal("an empty list or map", check.show({}))
    end)
    it("never holds a line break, which would break the reply", function()
      assert.are.equal('"a??b"', check.show("a\r\nb"))
    end)
  end)

  describe("a map", function()
    it("is one MessagePack map", function()
      assert.are.same({ a = 1 }, check.map("\129\161a\1"))
      assert.are.same({}, check.map("\128"))
    end)
    it("is nothing else", function()
      assert.is_nil(check.map("\1"))
      assert.is_nil(check.map("\161a"))
      assert.is_nil(check.map("\129\161a"))
      assert.is_nil(check.map("\128\128"))
    end)
  end)
end)
