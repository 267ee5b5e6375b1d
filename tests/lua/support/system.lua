-- A system of some partitions in one Redis, and a courier between them that a spec leads by the hand.
local busted = require "busted"
local msgpack = require "support.msgpack"
local space = require "support.space"

local M = {}

local System = {}
System.__index = System

local counter = 0

function M.new(count)
  counter = counter + 1
  local self = setmetatable({}, System)
  local root = ("s%s%d"):format(tostring(self):match("0x(%x+)"), counter)
  local partitions = {}
  for i = 0, count - 1 do
    self[i] = space.new({ tag = i == 0 and root or ("%s:%d~0a"):format(root, i) })
    partitions[i + 1] = { self[i].name, "active" }
  end
  for i = 0, count - 1 do
    local record = { format = 1, generation = 1, partitions = partitions, buckets = { 0 } }
    self[i]:redis("SET", self[i].name .. ":system", msgpack.pack(record))
  end
  self.count, self.root = count, root
  return self
end

--- For each test of a block its own.
function M.each(count)
  local current
  busted.before_each(function()
    current = M.new(count)
  end)
  busted.after_each(function()
    for i = 0, count - 1 do
      current[i]:close()
    end
  end)
  return setmetatable({}, {
    __index = function(_, name)
      return current[name]
    end,
  })
end

function System:pass(seconds)
  for i = 0, self.count - 1 do
    self[i]:pass(seconds)
  end
end

--- Letters of a partition: {to, bytes}, ...
function System:letters(from, more)
  local reply = self[from]:call("outbox", space.with({ courier = "c" }, more))
  local found = { next_ms = reply[1] }
  for i = 2, #reply, 2 do
    found[#found + 1] = { reply[i], reply[i + 1] }
  end
  return found
end

--- Brings letters to where they are for, and their answers back.
function System:carry(from, letters)
  local answers, all = {}, {}
  for i = 0, self.count - 1 do
    all[i + 1] = i
  end
  for i, letter in ipairs(letters) do
    answers[i] = self[letter[1]]:call("deliver", letter[2])[1]
    self[from]:call("outbox", { courier = "c", count = 1, except = all }, letter[2], answers[i])
  end
  return answers
end

--- Carries until there is nothing more.
---@return number letters
function System:settle()
  local count = 0
  repeat
    local before = count
    for from = 0, self.count - 1 do
      self[from]:settle()
      count = count + #self:carry(from, self:letters(from))
    end
  until count == before
  return count
end

return M
