-- Random matchers against a naive reading of docs/protocol.md, section 7.
local atoms = require "support.atoms"
local matching = require "support.matching"
local msgpack = require "support.msgpack"

local matcher = matching.module("limits.matcher")
local any, pack = atoms.any, msgpack.pack

  describe("a random matcher #once", function()
    local NAMES = { "a", "ab", "b", "b.c", "\195\188", "a*" }
    local PATTERNS = { "*", "a*", "*b*", "b.*", "*c" }
    local TAGS = { "a", "ab", "b", "c" }
    local PATHS = { "a", "b", "a.a", "a.b", "a.0", "b.1", "0", "a\\.b", "c.a.b" }

    local compared = {}
    for _, scalar in ipairs(atoms.scalars) do
      compared[#compared + 1] = scalar.family and scalar
    end
    -- Names beside the texts among the atoms; their order is the bytes'.
    local function text_atom(text)
      return { text = "s" .. text, forms = atoms.text_forms(text), family = "name", rank = text }
    end
    local function number_atom(number)
      return { text = "i" .. number, forms = { pack(number) }, family = "priority", rank = number }
    end

    local function star_fits(pattern, text)
      local lua = pattern:gsub("[^%w*]", "%%%0"):gsub("%*", ".*")
      return text:find("^" .. lua .. "$") ~= nil
    end

    -- One operator of a condition, as encoded bytes and as a question to an atom (nil: there, but equal to nothing).
    local function operator(atom, pattern)
      local kind = math.random(9)
      local one, other = atom(), atom()
      if kind == 1 then
        return "eq", atoms.encode(one), function(value)
          return value ~= nil and value.text == one.text
        end
      elseif kind == 2 then
        return "ne", atoms.encode(one), function(value)
          return value == nil or value.text ~= one.text
        end
      elseif kind == 3 then
        return "in", atoms.list({ atoms.encode(one), atoms.encode(other) }), function(value)
          return value ~= nil and (value.text == one.text or value.text == other.text)
        end
      elseif kind == 4 and pattern then
        local glob = any(PATTERNS)
        return "glob", pack(glob), function(value)
          return value ~= nil and value.text:sub(1, 1) == "s" and star_fits(glob, value.text:sub(2))
        end
      elseif kind == 5 then
        local is_wanted = math.random(4) > 1
        return "exists", pack(is_wanted), function()
          return is_wanted
        end
      end
      repeat
        one = atom()
      until one.family
      local names = { "lt", "le", "gt", "ge" }
      local name = any(names)
      return name, atoms.encode(one), function(value)
        if value == nil or value.family ~= one.family then
          return false
        end
        return value.rank == one.rank and name:sub(2) == "e"
          or value.rank ~= one.rank and (value.rank < one.rank) == (name:sub(1, 1) == "l")
      end
    end

    -- A condition: bytes, and what it says of a list of values (none when it is not there).
    local function condition(atom, pattern, is_tags)
      local kind = math.random(4)
      if kind <= 2 then
        local parts, patterns, known = {}, {}, {}
        for i = 1, kind == 1 and 1 or math.random(3) do
          local one = atom()
          local is_pattern = pattern == "scalars" and math.random(3) == 1
          local text = is_pattern and any(PATTERNS)
          parts[i] = is_pattern and pack(text) or atoms.encode(one)
          -- A name with a star in it is a pattern here too.
          text = text or pattern == "scalars" and one.text:find("*", 1, true) and one.text:sub(2)
          patterns[#patterns + 1] = text or nil
          known[not text and one.text or ""] = true
        end
        return kind == 1 and parts[1] or atoms.list(parts), function(values)
          for _, value in ipairs(values) do
            if known[value.text] then
              return true
            end
            for _, text in ipairs(patterns) do
              if star_fits(text, value.text:sub(2)) then
                return true
              end
            end
          end
          return false
        end
      end
      local parts, asked, denials, used = {}, {}, {}, {}
      for _ = 1, math.random(3) do
        local name, bytes, question = operator(atom, pattern)
        if not used[name] then
          used[name] = true
          parts[#parts + 1], parts[#parts + 2] = pack(name), bytes
          table.insert((name == "ne" or name == "exists") and denials or asked, { name, question })
        end
      end
      return atoms.map(parts), function(values)
        for _, denial in ipairs(denials) do
          for _, value in ipairs(values) do
            -- Tags: of none. There is but one of everything else.
            if not denial[2](not value.is_other and value or nil) then
              return false
            end
          end
          if #values == 0 and denial[1] == "exists" and denial[2]() then
            return false
          end
        end
        if #asked == 0 then
          return true
        end
        for _, value in ipairs(values) do
          local does_fit = true
          for _, question in ipairs(asked) do
            does_fit = does_fit and question[2](not value.is_other and value or nil)
          end
          if does_fit then
            return true
          end
        end
        return false
      end, is_tags
    end

    local function value_of(tree)
      return tree.scalar or { is_other = true, text = "?" }
    end

    -- A matcher: bytes, and 1, 0 or 0.5 (unknown) of facts.
    local function random_matcher(depth)
      local parts, questions, used = {}, {}, {}
      local function put(key, bytes, question)
        if not used[key] then
          used[key] = true
          parts[#parts + 1], parts[#parts + 2] = any(atoms.text_forms(key)), bytes
          questions[#questions + 1] = question
        end
      end
      local function put_condition(key, fact, values, atom, pattern)
        local bytes, question = condition(atom, pattern, fact == "tags")
        put(key, bytes, function(facts)
          if facts[fact] == nil then
            return 0.5
          end
          return question(values(facts)) and 1 or 0
        end)
      end
      for _ = 1, math.random(3) do
        local kind = math.random(depth > 0 and 8 or 6)
        if kind <= 2 then
          local fact = any({ "name", "queue" })
          put_condition(fact, fact, function(facts)
            return { text_atom(facts[fact]) }
          end, function()
            return text_atom(NAMES[math.random(fact == "name" and #NAMES or #NAMES - 1)])
          end, "scalars")
        elseif kind == 3 then
          put_condition("priority", "priority", function(facts)
            return { number_atom(facts.priority) }
          end, function()
            return number_atom(math.random(-2, 2))
          end)
        elseif kind == 4 then
          put_condition("tags", "tags", function(facts)
            local values = {}
            for i, tag in ipairs(facts.tags) do
              values[i] = text_atom(tag)
            end
            return values
          end, function()
            return text_atom(any(TAGS))
          end, "glob")
        elseif kind <= 6 then
          local path = math.random(6) == 1 and "argument" or "argument." .. any(PATHS)
          local segments = {}
          for segment in path:gsub("\\%.", "\0"):sub(10):gmatch("[^.]+") do
            segments[#segments + 1] = (segment:gsub("%z", "."))
          end
          put_condition(path, "argument", function(facts)
            local found = atoms.follow(facts.tree, segments)
            return found and { value_of(found) } or {}
          end, function()
            return any(math.random(2) == 1 and atoms.scalars or compared)
          end, "glob")
        elseif kind == 7 then
          local bytes, question = random_matcher(depth - 1)
          put("not", bytes, function(facts)
            return 1 - question(facts)
          end)
        else
          local branches, asked = {}, {}
          for i = 1, math.random(3) do
            branches[i], asked[i] = random_matcher(depth - 1)
          end
          put("any", atoms.list(branches), function(facts)
            local most = 0
            for _, question in ipairs(asked) do
              most = math.max(most, question(facts))
            end
            return most
          end)
        end
      end
      return atoms.map(parts), function(facts)
        local least = 1
        for _, question in ipairs(questions) do
          least = math.min(least, question(facts))
        end
        return least
      end
    end

    local function random_facts()
      local tree = atoms.tree(3)
      if math.random(4) > 1 then
        -- Mostly maps with the keys that the paths ask for.
        local entries, parts = {}, {}
        for i, key in ipairs({ "a", "b", "0", "a.b", "c" }) do
          local value = atoms.tree(2)
          entries[i] = { key, value }
          parts[2 * i - 1], parts[2 * i] = any(atoms.text_forms(key)), value.bytes
        end
        tree = { bytes = atoms.map(parts), entries = entries }
      end
      local tags = {}
      for _, tag in ipairs(TAGS) do
        tags[#tags + 1] = math.random(3) == 1 and tag or nil
      end
      local facts = { name = any(NAMES), queue = NAMES[math.random(#NAMES - 1)], priority = math.random(-2, 2),
        tags = tags, argument = tree.bytes, tree = tree }
      for _, fact in ipairs({ "name", "queue", "priority", "tags", "argument" }) do
        if math.random(8) == 1 then
          facts[fact] = nil
        end
      end
      return facts
    end

    it("holds for what a naive reading says, in Lua and inside Redis", function()
      math.randomseed(17)
      local answers, refused = {}, 0
      for _ = 1, 250 do
        local match, question = random_matcher(2)
        local program, problem = matcher.compile(match)
        if program then
          for _ = 1, 5 do
            local facts = random_facts()
            local expected = ({ [0] = "false", [0.5] = "nil", [1] = "true" })[question(facts)]
            answers[expected] = (answers[expected] or 0) + 1
            local inside = matching.test_inside(match, facts)
            local answer = tostring(matcher.test(program, facts))
            if answer ~= expected or inside ~= expected then
              error(("%q of %q: %s, not %s (%s)"):format(match, facts.argument or "", expected, answer, inside))
            end
          end
        else
          assert.is_truthy(problem:find("can satisfy", 1, true), problem)
          refused = refused + 1
        end
      end
      assert.is_true(answers["true"] > 50 and answers["false"] > 50 and answers["nil"] > 50)
      assert.is_true(refused < 200)
    end)
    it("is refused only when no job holds for it", function()
      math.randomseed(31)
      local refused = 0
      for _ = 1, 400 do
        local match, question = random_matcher(0)
        if not matcher.compile(match) then
          refused = refused + 1
          for _ = 1, 15 do
            assert.is_true(question(random_facts()) < 1)
          end
        end
      end
      assert.is_true(refused > 40)
    end)
    it("is refused only when no value of an argument holds for it", function()
      math.randomseed(19)
      local refused = 0
      for _ = 1, 2000 do
        local bytes, question = condition(function()
          return any(math.random(2) == 1 and atoms.scalars or compared)
        end, "glob")
        if not matcher.compile("\129\170argument.x" .. bytes) then
          refused = refused + 1
          local is_possible = question({}) or question({ value_of({}) })
          for _, scalar in ipairs(atoms.scalars) do
            is_possible = is_possible or question({ scalar })
          end
          if is_possible then
            error(("refused: %q"):format(bytes))
          end
        end
      end
      assert.is_true(refused > 40)
    end)
  end)
