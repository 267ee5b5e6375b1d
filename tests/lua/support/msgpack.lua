-- MessagePack as specs need it: text as str, empty tables as maps, and bytes that no packer would make.
local MessagePack = require "MessagePack"

local M = {}

local Raw = {}

MessagePack.set_string("string")
local pack_table = MessagePack.packers._table
MessagePack.packers._table = function(buffer, value)
  if getmetatable(value) == Raw then
    buffer[#buffer + 1] = value.bytes
  elseif next(value) == nil then
    buffer[#buffer + 1] = "\128"
  else
    pack_table(buffer, value)
  end
end

M.pack = MessagePack.pack
M.unpack = MessagePack.unpack

--- A value packed already, as part of a larger one.
function M.raw(bytes)
  return setmetatable({ bytes = bytes }, Raw)
end

M.NIL = "\192"
M.NAN = M.raw("\203\127\248\0\0\0\0\0\0")

--- Text as MessagePack's bin, which specs refuse.
function M.bin(text)
  return M.raw("\196" .. string.char(#text) .. text)
end

return M
