-- Every key of a namespace is spelled here and nowhere else. Each is a constant, so a script
-- pays only for those it reaches. A missing KEYS[1] must not throw here: meta.open names the error.
local M = {}

local NAMESPACE = KEYS[1] or ""

M.META = NAMESPACE .. ":meta" -- string: header and settings (module base.meta)
M.MANIFEST = NAMESPACE .. ":manifest" -- hash: versions, names of scripts, shas (written by loaders)
M.SCRIPTS = NAMESPACE .. ":scripts" -- hash: sources, where namespaces cannot share them (written by loaders)
M.SEQ = NAMESPACE .. ":seq" -- string: the last id (module base.serial), and statistics of the last new jobs
M.JOB = NAMESPACE .. ":j:" -- + id, string: job record (module job.jobs)
M.ARGUMENT = NAMESPACE .. ":a:" -- + id, string: its argument, as it came
M.OUTCOME = NAMESPACE .. ":o:" -- + id, string: kept result, or error of the last failure
M.EXTRA = NAMESPACE .. ":x:" -- + id, string: rarely needed facts of a job
M.SET = NAMESPACE .. ":" -- + letter + ":" + queue, zset: the jobs of a queue in a state (module job.states)
M.EXPIRING = NAMESPACE .. ":y:" -- + queue, zset: jobs that end unless they start by then
M.KNOWN_QUEUES = KEPT -- queues of earlier calls by name, used again while their records say the same (queue.queues)
M.QUEUE = NAMESPACE .. ":queue:" -- + queue, string: its record (module queue.queues)
M.QUEUE_NAMES = NAMESPACE .. ":queue-names" -- zset, scores 0: names in order, for paging
M.REVIEW = NAMESPACE .. ":review" -- string: the queue up to which new retention settings were applied
M.PATTERNS = NAMESPACE .. ":patterns" -- hash: pattern -> how far its index is built
M.PATTERN_USE = NAMESPACE .. ":pattern-use" -- zset: patterns by when they were last used, to an hour
M.HEADS = NAMESPACE .. ":heads:" -- + pattern, zset: queues by a lower bound of their best job
M.DUE = NAMESPACE .. ":due" -- zset: everything that waits for the clock (module base.due)
M.RESPITE = NAMESPACE .. ":respite" -- string: when leases were last found long over (module schedules.sweep)
M.SLEEPERS = NAMESPACE .. ":sleepers" -- hash: channel -> queues its sleepers want; names of jobs
-- that they do not take
M.ASLEEP = NAMESPACE .. ":asleep:" -- + channel, zset: who sleeps, until when
M.WAKE = NAMESPACE .. ":wake:" -- + channel, zset: the marker that sleepers block on
M.REQUEST = NAMESPACE .. ":request:" -- + operation + ":" + token, string: what was answered
M.ENDED = NAMESPACE .. ":ended" -- shard channel: ends of watched jobs
M.WORKER = NAMESPACE .. ":worker-record:" -- + worker id, string: its record (module workers.workers)
M.WORKER_IDS = NAMESPACE .. ":worker-ids" -- zset, scores 0: ids of all workers in order, for paging
M.ALIVE = NAMESPACE .. ":alive" -- zset: worker id by its last sign of life
M.LISTED = NAMESPACE .. ":listed" -- hash: worker that is not registered -> record (module workers.workers)
M.LISTED_SEEN = NAMESPACE .. ":listed-seen" -- zset: these by their last sign of life
M.URLS = NAMESPACE .. ":urls" -- hash: url -> worker id
M.HELD = NAMESPACE .. ":held:" -- + id of a worker that is pushed to, zset: jobs it runs, by start
M.NAMED = NAMESPACE .. ":named:" -- + worker, string: ids of jobs of which one that picks said that it runs them
M.POOLS = NAMESPACE .. ":pools" -- hash: pool -> queues and refused names (module pick.pools)
M.POOL_MEMBERS = NAMESPACE .. ":pool-members:" -- + pool, set: all its workers
M.POOL = NAMESPACE .. ":pool:" -- + pool, zset: its workers with room, by load

-- Constraints. A key of one is <number> .. ":" .. value, the number being the constraint's own.
M.CONSTRAINTS = NAMESPACE .. ":constraints" -- hash: id -> definition (module limits.constraints)
M.CONSTRAINT_IDS = NAMESPACE .. ":constraint-ids" -- zset, scores 0: ids in order, for paging
M.MATCHING = NAMESPACE .. ":matching:" -- + queue + 0 byte + job name, string: the constraints that may match there
M.LIMIT = NAMESPACE .. ":limit:" -- + number, string: its limits and id (module limits.keyrecord)
M.KEY = NAMESPACE .. ":key:" -- + key, string: what it has in use (module limits.keyrecord)
M.KEYS_OF = NAMESPACE .. ":keys:" -- + number, zset, scores 0: values of the keys in use
M.STARTS = NAMESPACE .. ":starts:" -- + key, string: moments of starts, 8 bytes each
M.PARKED = NAMESPACE .. ":parked:" -- + length of key + ":" + key + queue, zset: lanes that it holds
M.SENT = NAMESPACE .. ":sent:" -- + fair queue, set: keys that sent lanes back to it
M.OPENING = NAMESPACE .. ":opening" -- zset: keys by when to check them
M.LANE = NAMESPACE .. ":lane:" -- + lane, zset: its jobs by priority
-- + queue, zset: lanes that may start, or groups of a fair queue (module limits.lane_index)
M.LANES = NAMESPACE .. ":lanes:"
M.GROUP = NAMESPACE .. ":group:" -- + group + index behind the namespace, zset: what an index of lanes has of a group
M.TURNS = NAMESPACE .. ":turns:" -- + priority + ":" + queue, zset: clock and finishes (module limits.lane_index)
M.FAIR = NAMESPACE .. ":fair:" -- + queue, string: by what it is shared
M.WEIGHTS = NAMESPACE .. ":weights:" -- + queue, hash: value -> weight
M.WALK = NAMESPACE .. ":walk:" -- + queue, string: how far its waiting jobs were placed (module life.placement)
M.CHANGES = NAMESPACE .. ":changes" -- hash: number of a constraint -> key looked at last (module limits.rollout)
M.IMPORT = NAMESPACE .. ":import" -- string: what is being imported, or was (module upkeep.copying)

-- Beyond a job's own life.
M.UNIQUE = NAMESPACE .. ":unique:" -- + unique key, string: ids of the jobs whose it is, the latest first
M.WAITS_FOR = NAMESPACE .. ":waits-for:" -- + id, zset, scores 0: jobs it still waits for
M.DEPENDENTS = NAMESPACE .. ":dependents:" -- + id, zset, scores 0: jobs that wait for it
M.READERS = NAMESPACE .. ":readers:" -- + id, zset, scores 0: jobs that depend on it and have not ended
M.TAGGED = NAMESPACE .. ":tagged:" -- + tag, zset, scores 0: jobs that have it
M.TAG_NAMES = NAMESPACE .. ":tag-names" -- zset, scores 0: tags in order, for paging
M.FAILED = NAMESPACE .. ":failed:" -- + group, zset: its jobs that failed for good, by when
M.FAILED_GROUPS = NAMESPACE .. ":failed-groups" -- zset, scores 0: groups in order, for paging
M.SCHEDULES = NAMESPACE .. ":schedules" -- hash: id -> record (module schedules.schedules)
M.SCHEDULE_IDS = NAMESPACE .. ":schedule-ids" -- zset, scores 0: ids in order, for paging
M.LOG = NAMESPACE .. ":log" -- string: what is not in the statistics yet (module statistics.statlog)
-- + queue + 0 byte + name, and others, hash: bucket -> counts (module statistics.buckets)
M.STATS = NAMESPACE .. ":stats:"
M.STATS_PAIRS = NAMESPACE .. ":stats-pairs" -- zset, scores 0: queue + 0 byte + name (empty if it is the queue's)
M.MARKS = NAMESPACE .. ":marks" -- zset, scores 0: moments and their names, in order (module find.marks)
M.EVENTS = NAMESPACE .. ":events" -- stream, and shard channel
M.TRACKED = NAMESPACE .. ":job:" -- + id, shard channel
M.WORKER_CHANNEL = NAMESPACE .. ":worker:" -- + worker, shard channel: messages to it
M.API_KEYS = NAMESPACE .. ":api-keys" -- hash: id -> record (module access.apikeys)
M.API_KEY_IDS = NAMESPACE .. ":api-key-ids" -- zset, scores 0: ids in order, for paging
M.API_KEY_USES = NAMESPACE .. ":api-key-uses" -- hash: id -> when it was used last
M.TRAIL = NAMESPACE .. ":trail" -- zset, scores 0: what operators changed, in order (module access.trail)
M.WEBHOOKS = NAMESPACE .. ":webhooks" -- string: all of them (module webhooks.registry)
M.WEBHOOK_SECRETS = NAMESPACE .. ":webhook-secrets" -- hash: id -> what its notifications are signed with
M.OWN_SETTINGS = NAMESPACE .. ":settings:" -- + queue, string: settings of its own

return M
