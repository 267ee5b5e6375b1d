-- lua5.1 example.lua [URL of Redis] [namespace]
-- Enqueues, works, reports progress, fails and retries, and does not mind SCRIPT FLUSH.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local jq = require "jq"

local url, namespace = arg[1] or "redis://127.0.0.1:6379", arg[2]
local queue = jq.connect(url, namespace)
local other = jq.connect(url, namespace) -- somebody else

local handlers = {}

handlers["lua.add"] = function(numbers)
  return numbers[1] + numbers[2]
end

-- Three pages, and a failure in the middle. The next attempt goes on where this one stopped.
handlers["lua.print"] = function(document, job)
  for page = document.from or 0, document.pages - 1 do
    print(("attempt %d prints page %d"):format(job.attempt, page))
    job:progress((page + 1) / document.pages, "page " .. page, { pages = document.pages, from = page + 1 })
    if page == 1 and job.attempt == 1 then
      error("out of paper", 0)
    end
  end
  return "printed"
end

handlers["lua.never"] = function()
  error({ message = "no such customer", group = "NoSuchCustomer", retry = false })
end

handlers["lua.long"] = function(_, job)
  print("long: it was " .. other:cancel(job.id))
  while true do
    job:beat()
  end
end

local sum = queue:enqueue("lua.add", { 40, 2 }, { keep_result = true })
local document = queue:enqueue("lua.print", { pages = 3 }, { keep_result = true, retry_base = 0.05 })
local never = queue:enqueue("lua.never")
local long = queue:enqueue("lua.long")

other:command("SCRIPT", "FLUSH") -- as a restart or a failover would
local ended = { done = true, error = true, cancelled = true, skipped = true }
queue:work(handlers, {
  is_over = function()
    for _, id in ipairs({ sum, document, never, long }) do
      if not ended[queue:get(id).status] then
        return false
      end
    end
    return true
  end,
})

print("add: " .. table.concat({ queue:result(sum) }, " "))
local printed = queue:get(document)
print(("print: %s at attempt %d, %d%%: %s")
  :format(printed.status, printed.attempt, printed.progress * 100, printed.result))
print("       failed before: " .. printed.message)
local failed = queue:get(never)
print(("never: %s, %s: %s, %d attempt"):format(failed.status, failed.group, failed.message, failed.attempt))
print("long: it is " .. queue:get(long).status)
