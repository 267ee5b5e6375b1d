-- Which partition of a cluster a namespace is. Its name says it: {<cluster>:<number>~<salt>/<how many>}.
local M = {}

local MOST = 256

--- How many partitions the namespace's cluster has, and which of them it is, from 0; 1 and 0 of one that is alone.
---@return number count
---@return number number
function M.of(namespace)
  local number, count = namespace:match(":(%d+)~%x+/(%d+)}$")
  number, count = tonumber(number), tonumber(count)
  if number and number < count and count <= MOST then
    return count, number
  end
  return 1, 0
end

--- The part of a limit that a partition has, all parts being alike but for a remainder, which the first ones have.
---@return number share 0 where there is not one for each
function M.share(whole)
  local count, number = M.of(KEYS[1])
  local share = math.floor(whole / count)
  return share > 0 and number < whole % count and share + 1 or share
end

return M
