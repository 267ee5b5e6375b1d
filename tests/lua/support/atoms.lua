-- MessagePack values whose meaning is written out here, so that tests need no reader to judge readers by.
local M = {}

local function hex(text)
  return (text:gsub("%s", ""):gsub("%x%x", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end
M.hex = hex

local function length(size, width)
  local bytes = {}
  for i = width, 1, -1 do
    bytes[i] = string.char(size % 256)
    size = math.floor(size / 256)
  end
  return table.concat(bytes)
end

--- All encodings of a str (the shortest first).
function M.text_forms(text)
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

local function bin_forms(bytes)
  return { "\196" .. length(#bytes, 1) .. bytes, "\197" .. length(#bytes, 2) .. bytes,
    "\198" .. length(#bytes, 4) .. bytes }
end

local function ext_forms(kind, bytes)
  local forms = { "\199" .. length(#bytes, 1) .. kind .. bytes, "\200" .. length(#bytes, 2) .. kind .. bytes,
    "\201" .. length(#bytes, 4) .. kind .. bytes }
  local fixed = ({ [1] = "\212", [2] = "\213", [4] = "\214", [8] = "\215", [16] = "\216" })[#bytes]
  if fixed then
    table.insert(forms, 1, fixed .. kind .. bytes)
  end
  return forms
end

-- In ascending order, with every encoding there is of each.
local NUMBERS = {
  { "d-inf", "cbfff0000000000000", "caff800000" },
  { "d-1.7976931348623157e+308", "cbffefffffffffffff" },
  { "d-9.2233720368547779e+18", "cbc3e0000000000001" }, -- the next below -2^63
  { "i-9223372036854775808", "d38000000000000000", "cbc3e0000000000000", "cadf000000" },
  { "i-9223372036854775807", "d38000000000000001" },
  { "i-9007199254740993", "d3ffdfffffffffffff" },
  { "i-9007199254740992", "d3ffe0000000000000", "cbc340000000000000", "cada000000" },
  { "i-9007199254740991", "d3ffe0000000000001", "cbc33fffffffffffff" },
  { "i-2147483649", "d3ffffffff7fffffff", "cbc1e0000000200000" },
  { "i-2147483648", "d280000000", "d3ffffffff80000000", "cbc1e0000000000000", "cacf000000" },
  { "i-32769", "d2ffff7fff" },
  { "i-32768", "d18000", "d2ffff8000" },
  { "i-129", "d1ff7f" },
  { "i-128", "d080", "d1ff80", "cac3000000" },
  { "i-33", "d0df" },
  { "i-32", "e0", "d0e0", "d1ffe0" },
  { "d-1.5", "cbbff8000000000000", "cabfc00000" },
  { "i-1", "ff", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff", "cabf800000", "cbbff0000000000000" },
  { "d-4.9406564584124654e-324", "cb8000000000000001" },
  { "i0", "00", "cc00", "cd0000", "ce00000000", "cf0000000000000000", "d000", "ca00000000", "ca80000000",
    "cb0000000000000000", "cb8000000000000000" },
  { "d4.9406564584124654e-324", "cb0000000000000001" },
  { "d2.2250738585072009e-308", "cb000fffffffffffff" },
  { "d2.2250738585072014e-308", "cb0010000000000000" },
  { "d1.4012984643248171e-45", "ca00000001", "cb36a0000000000000" },
  { "d1.1754943508222875e-38", "ca00800000", "cb3810000000000000" },
  { "d0.10000000000000001", "cb3fb999999999999a" },
  { "d0.10000000149011612", "ca3dcccccd", "cb3fb99999a0000000" },
  { "i1", "01", "cc01", "cd0001", "d001", "ca3f800000", "cb3ff0000000000000" },
  { "d1.5", "ca3fc00000", "cb3ff8000000000000" },
  { "i127", "7f", "cc7f", "d07f", "d1007f" },
  { "i128", "cc80", "cd0080", "d10080", "ca43000000" },
  { "i255", "ccff", "cd00ff" },
  { "i256", "cd0100", "d10100" },
  { "i65535", "cdffff", "ce0000ffff" },
  { "i65536", "ce00010000", "d200010000" },
  { "i4294967295", "ceffffffff", "cf00000000ffffffff", "cb41efffffffe00000" },
  { "i4294967296", "cf0000000100000000", "d30000000100000000", "ca4f800000" },
  { "i9007199254740991", "cf001fffffffffffff", "cb433fffffffffffff" },
  { "i9007199254740992", "cf0020000000000000", "d30020000000000000", "cb4340000000000000", "ca5a000000" },
  { "i9007199254740993", "cf0020000000000001" },
  { "i9007199254740994", "cf0020000000000002", "cb4340000000000001" },
  { "i9999999999999999", "cf002386f26fc0ffff" },
  { "i10000000000000000", "cf002386f26fc10000", "cb4341c37937e08000" },
  { "i9223372036854775807", "cf7fffffffffffffff", "d37fffffffffffffff" },
  { "i9223372036854775808", "cf8000000000000000", "cb43e0000000000000", "ca5f000000" },
  { "i18446744073709549568", "cffffffffffffff800", "cb43efffffffffffff" },
  { "i18446744073709551615", "cfffffffffffffffff" },
  { "d1.8446744073709552e+19", "cb43f0000000000000", "ca5f800000" },
  { "d1.7976931348623157e+308", "cb7fefffffffffffff" },
  { "dinf", "cb7ff0000000000000", "ca7f800000" },
}

-- In bytewise order.
local TEXTS = { "", "\0", "\1", "DE", "De", "a", "a\0", "a\0b", "a\0sb", "a\1", "ab", "abc", "b*", ("b"):rep(31),
  ("b"):rep(32), ("b"):rep(300), "n", "t", "~", "\127", "\195\188", "\255", "\255\255" }

--- Scalars: {text = canonical, forms = encodings, family, rank}. Of one family, the greater rank is the greater value.
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
  add("s" .. text, M.text_forms(text), "text", rank)
end
add("n", { "\192" })
add("f", { "\194" })
add("t", { "\195" })
for _, bytes in ipairs({ "", "a", "DE", ("x"):rep(16) }) do
  add("b" .. bytes, bin_forms(bytes))
  add("x\5" .. bytes, ext_forms("\5", bytes))
end
add("x\255" .. ("\0"):rep(4), ext_forms("\255", ("\0"):rep(4))) -- a timestamp

-- Values that equal nothing, and hold nothing.
local HOLLOW = { "\128", "\144", "\220\0\0", "\221\0\0\0\0", "\222\0\0", "\223\0\0\0\0",
  hex("cb7ff8000000000000"), hex("cbfff8000000000001"), hex("ca7fc00000"), hex("caffc00000") }

--- Values that equal nothing.
M.others = { "\129\161a\1", "\145\1", unpack(HOLLOW) }

--- Bytes that are no whole value.
M.broken = { "", "\193", "\161", "\129", "\129\161a", "\145", "\220\0", "\217\5abc", "\1\1", "\129\161a\1\192",
  "\129\193\1", "\129\161a\193", "\145\193", "\221\255\255\255\255", "\223\255\255\255\255",
  "\219\255\255\255\255", "\198\255\255\255\255", "\201\255\255\255\255\1", "\203\0",
  "\202\0\0\0", "\207\0\0\0\0\0\0\0", "\216\1abc" }

local function any(list)
  return list[math.random(#list)]
end
M.any = any

--- One of the encodings of a scalar.
function M.encode(scalar)
  return math.random(2) == 1 and scalar.forms[1] or any(scalar.forms)
end

local function head(count, fixed, wide)
  local forms = { string.char(wide) .. length(count, 2), string.char(wide + 1) .. length(count, 4) }
  if count < 16 then
    forms[3] = string.char(fixed + count)
  end
  return any(forms)
end

--- A list of encoded values.
function M.list(values)
  return head(#values, 0x90, 0xDC) .. table.concat(values)
end

--- A map of encoded keys and values in turn.
function M.map(pairs_)
  return head(#pairs_ / 2, 0x80, 0xDE) .. table.concat(pairs_)
end

-- Keys: {bytes, as a segment would be written to mean them}.
local function keys()
  local all = {}
  for _, text in ipairs({ "a", "b", "c", "0", "1", "-1", "01", "a.b", "\\", "aa", "18446744073709551615", "x y" }) do
    for _, form in ipairs(M.text_forms(text)) do
      all[#all + 1] = { form, text }
    end
  end
  for _, number in ipairs({ { "0", "\0" }, { "1", "\1" }, { "1", "\204\1" }, { "1", "\211\0\0\0\0\0\0\0\1" },
    { "-1", "\255" }, { "-1", "\208\255" }, { "18446744073709551615", "\207" .. ("\255"):rep(8) } }) do
    all[#all + 1] = { number[2], number[1] }
  end
  -- What no path can mean: bin, ext, floats, nil, booleans, lists, maps.
  for _, key in ipairs({ "c40161", "d40161", "ca3f800000", "c0", "c3", "91a161", "81a161a161" }) do
    all[#all + 1] = { hex(key) }
  end
  return all
end
M.keys = keys()

--- A random value: {bytes, scalar} or {bytes, entries = {{segment or nil, value}, ...}}.
function M.tree(depth)
  local kind = math.random(depth > 0 and 10 or 4)
  if kind <= 3 then
    local scalar = any(M.scalars)
    return { bytes = M.encode(scalar), scalar = scalar }
  elseif kind == 4 then
    return { bytes = any(HOLLOW), entries = {} }
  end
  local entries, parts, used = {}, {}, {}
  for _ = 1, math.random(0, 6) do
    local value = M.tree(depth - 1)
    local key = kind > 7 and any(M.keys) or nil
    local segment = key and key[2] or not key and tostring(#entries)
    if not used[segment] then
      used[segment or 0] = true
      parts[#parts + 1] = key and key[1]
      parts[#parts + 1] = value.bytes
      entries[#entries + 1] = { segment, value }
    end
  end
  return { bytes = kind > 7 and M.map(parts) or M.list(parts), entries = entries }
end

--- A random path, mostly one that leads somewhere.
---@return string[] segments
function M.path(tree)
  local segments = {}
  for i = 1, math.random(4) do
    local entry = math.random(5) > 1 and tree and tree.entries and tree.entries[1] and any(tree.entries)
    tree = entry and entry[2]
    segments[i] = entry and entry[1] or any(M.keys)[2] or "z"
    if math.random(3) == 1 then
      break
    end
  end
  return segments
end

--- What a path leads to in such a value.
---@param segments string[]
function M.follow(tree, segments)
  for _, segment in ipairs(segments) do
    local found
    for _, entry in ipairs(tree.entries or {}) do
      found = found or entry[1] == segment and entry[2]
    end
    if not found then
      return nil
    end
    tree = found
  end
  return tree
end

return M
