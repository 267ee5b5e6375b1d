-- MessagePack values whose meaning is written out here, so that tests need no reader to judge readers by.
local M = {}

local function hex(text)
  return (text:gsub("%s", ""):gsub("%x%x", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

local function length(size, width)
  local bytes = {}
  for i = width, 1, -1 do
    bytes[i] = string.char(size % 256)
    size = math.floor(size / 256)
  end
  return table.concat(bytes)
end

--- All encodings of a str (the shortest first).
local function text_forms(text)
  local forms = {}
  if #text < 32 then
    forms[1] = string.char(0xA0 + #text) .. text
  end
  if #text < 256 then
    forms[#forms + 1] = "\217" .. length(#text, 1) .. text
  end
  if #text < 65536 then
    forms[#forms + 1] = "\218" .. length(#text, 2) .. text
  end
  forms[#forms + 1] = "\219" .. length(#text, 4) .. text
  return forms
end

--- All encodings of binary data, which is read as text.
local function bin_forms(bytes)
  return { "\196" .. length(#bytes, 1) .. bytes, "\197" .. length(#bytes, 2) .. bytes,
    "\198" .. length(#bytes, 4) .. bytes }
end

-- In ascending order, with encodings of each.
local NUMBERS = {
  { "d-inf", "cbfff0000000000000", "caff800000" },
  { "d-1.7976931348623157e+308", "cbffefffffffffffff" },
  { "d-9.2233720368547758e+18", "d38000000000000000", "cbc3e0000000000000", "d38000000000000001" },
  { "d-2147483649", "d3ffffffff7fffffff", "cbc1e0000000200000" },
  { "d-32768", "d18000", "d2ffff8000" },
  { "d-33", "d0df" },
  { "d-32", "e0", "d0e0", "d1ffe0" },
  { "d-1.5", "cbbff8000000000000", "cabfc00000" },
  { "d-1", "ff", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff", "cabf800000", "cbbff0000000000000" },
  { "d0", "00", "cc00", "cd0000", "ce00000000", "cf0000000000000000", "d000", "ca80000000", "cb8000000000000000" },
  { "d4.9406564584124654e-324", "cb0000000000000001" },
  { "d0.10000000000000001", "cb3fb999999999999a" },
  { "d1", "01", "cc01", "cd0001", "d001", "ca3f800000", "cb3ff0000000000000" },
  { "d127", "7f", "cc7f", "d07f", "d1007f" },
  { "d256", "cd0100", "d10100" },
  { "d4294967295", "ceffffffff", "cf00000000ffffffff", "cb41efffffffe00000" },
  { "d9007199254740991", "cf001fffffffffffff", "cb433fffffffffffff" },
  { "d9007199254740992", "cf0020000000000000", "d30020000000000000", "cb4340000000000000", "cf0020000000000001" },
  { "d9.2233720368547758e+18", "cf8000000000000000", "cb43e0000000000000", "cf7fffffffffffffff" },
  { "d1.8446744073709552e+19", "cfffffffffffffffff", "cb43f0000000000000", "ca5f800000" },
  { "dinf", "cb7ff0000000000000", "ca7f800000" },
}

-- In bytewise order.
local TEXTS = { "", "\0", "\1", "DE", "De", "a", "a\0", "a\0b", "a\0sb", "a\1", "ab", "abc", "b*", ("b"):rep(31),
  ("b"):rep(32), ("b"):rep(300), "n", "t", "~", "\127", "\195\188", "\255a", "\255\255" }

--- Scalars: {text = as it names keys, forms = encodings, family, rank}: the greater rank is the greater value.
M.scalars = {}

local function add(text, forms, family, rank)
  M.scalars[#M.scalars + 1] = { text = text, forms = forms, family = family, rank = rank }
end

for rank, number in ipairs(NUMBERS) do
  local forms = {}
  for i = 2, #number do
    forms[i - 1] = hex(number[i])
  end
  add(number[1], forms, "number", rank)
end
for rank, text in ipairs(TEXTS) do
  local forms = text_forms(text)
  for _, form in ipairs(#text < 256 and bin_forms(text) or {}) do
    forms[#forms + 1] = form
  end
  add("s" .. text, forms, "text", rank)
end
add("f", { "\194" })
add("t", { "\195" })

--- Bytes that are no whole value.
M.broken = { "", "\193", "\161", "\129", "\129\161a", "\145", "\220\0", "\217\5abc", "\1\1",
  "\129\161a\1\192", "\129\193\1", "\129\161a\193", "\145\193", "\221\255\255\255\255", "\223\255\255\255\255",
  "\219\255\255\255\255", "\198\255\255\255\255", "\201\255\255\255\255\1", "\203\0",
  "\202\0\0\0", "\207\0\0\0\0\0\0\0", "\216\1abc" }

return M
