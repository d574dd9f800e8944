/**
 * The scripts of a fleet in Redis. Each is one step: no other command runs meanwhile, so every node receives the messages in
 * the order of the changes.
 *
 * The first key of each script is the prefix of all keys, which has a hash tag: in a cluster all keys are in one slot.
 *
 * - `:key` and `:last`: the key of the ids of sessions, and the number of the latest node.
 * - `:nodes`: the nodes, with the time at which the lease of each ends. `:sent`: how many messages were published for each.
 * - `:s:<id>`: a session. `r` is the part of its record that never changes, `p` and `c` are digests of its principal and its
 *   client, `i` is whether it is initialized, `g` the log level, `l` the node that listens, `t` the time after its last use;
 *   `n:<node>` is a node that has it, and `u:<uri as JSON>` a subscription, with a number that grows.
 * - `:sessions`, `:p:<principal>`, `:c:<client>`: the ids of all sessions, and of those of one principal and one client, with
 *   the time at which each expires. `:clients`: the number of the sessions of each client.
 *
 * All but the first line expires an hour after the last session, also if no node removes it.
 */
import * as Redis from "effect/persistence/Redis"

const prelude = `
local p = KEYS[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000

local function publish(node, text)
  local number = redis.call('HINCRBY', p .. ':sent', node, 1)
  redis.call('PUBLISH', p .. ':to:' .. node, number .. ' ' .. text)
end

local function running()
  return redis.call('ZRANGEBYSCORE', p .. ':nodes', '(' .. now, '+inf')
end

local function publishAll(text)
  for _, node in ipairs(running()) do publish(node, text) end
end

-- Only the nodes that have had the session receive its changes: others would be too many. A node that waits for its own
-- message receives it also if its lease has ended.
local function publishChange(node, others, text, isEchoed)
  for _, other in ipairs(others) do publish(other, text) end
  if isEchoed then publish(node, text) end
  return others
end

local function isLive(id)
  local expires = redis.call('ZSCORE', p .. ':sessions', id)
  return expires and tonumber(expires) > now
end

local function index(key, id, idle)
  redis.call('ZADD', key, now + idle, id)
  redis.call('PEXPIRE', key, idle + 3600000)
end

local function use(id)
  local known = redis.call('HMGET', p .. ':s:' .. id, 't', 'p', 'c')
  if not known[1] then return end
  local idle = tonumber(known[1])
  redis.call('PEXPIRE', p .. ':s:' .. id, idle + 3600000)
  redis.call('PEXPIRE', p .. ':clients', idle + 3600000)
  index(p .. ':sessions', id, idle)
  index(p .. ':c:' .. known[3], id, idle)
  if known[2] ~= '' then index(p .. ':p:' .. known[2], id, idle) end
end

local function count(client)
  local left = redis.call('ZCARD', p .. ':c:' .. client)
  if left == 0 then redis.call('ZREM', p .. ':clients', client)
  else redis.call('ZADD', p .. ':clients', left, client) end
end

local function remove(id, client)
  local known = redis.call('HMGET', p .. ':s:' .. id, 'p', 'c')
  client = known[2] or client
  if known[1] and known[1] ~= '' then redis.call('ZREM', p .. ':p:' .. known[1], id) end
  redis.call('DEL', p .. ':s:' .. id)
  redis.call('ZREM', p .. ':sessions', id)
  if client then
    redis.call('ZREM', p .. ':c:' .. client, id)
    count(client)
  end
end

-- The other running nodes that have had a session.
local function others(id, node)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', p .. ':s:' .. id)) do
    local other = string.match(field, '^n:(%d+)$')
    if other and other ~= node then
      local ends = redis.call('ZSCORE', p .. ':nodes', other)
      if ends and tonumber(ends) > now then found[#found + 1] = other end
    end
  end
  return found
end
`

const script = <Params extends ReadonlyArray<string | number>, Result>(lua: string) =>
  Redis.script((...params: [prefix: string, ...Params]) => params, { lua: prelude + lua, numberOfKeys: 1 })
    .withReturnType<Result>()

/** Adds a node. A Redis that has lost its data begins at another number, because earlier nodes may be running. */
export const join = script<[key: string, leaseMillis: number, first: number, maxNode: number], [number, string]>(`
redis.call('SET', p .. ':key', ARGV[1], 'NX')
redis.call('SET', p .. ':last', ARGV[3], 'NX')
local node
repeat
  node = redis.call('INCR', p .. ':last')
  if node > tonumber(ARGV[4]) then
    node = 1
    redis.call('SET', p .. ':last', 1)
  end
until not redis.call('ZSCORE', p .. ':nodes', node)
redis.call('ZADD', p .. ':nodes', now + tonumber(ARGV[2]), node)
return { node, redis.call('GET', p .. ':key') }`)

/** Renews a lease, and publishes an empty message for its node. Returns whether it was lost, the key, and all nodes. */
export const renew = script<[node: number, leaseMillis: number, key: string], [number, string, ReadonlyArray<string>]>(`
local ends = redis.call('ZSCORE', p .. ':nodes', ARGV[1])
local isLost = not ends or tonumber(ends) <= now
redis.call('ZADD', p .. ':nodes', now + tonumber(ARGV[2]), ARGV[1])
redis.call('SET', p .. ':key', ARGV[3], 'NX')
if tonumber(redis.call('GET', p .. ':last') or 0) < tonumber(ARGV[1]) then redis.call('SET', p .. ':last', ARGV[1]) end
redis.call('ZREMRANGEBYSCORE', p .. ':nodes', '-inf', now)
publish(ARGV[1], '')
if redis.call('HLEN', p .. ':sent') > redis.call('ZCARD', p .. ':nodes') then
  for _, node in ipairs(redis.call('HKEYS', p .. ':sent')) do
    if not redis.call('ZSCORE', p .. ':nodes', node) then redis.call('HDEL', p .. ':sent', node) end
  end
end
return { isLost and 1 or 0, redis.call('GET', p .. ':key'), running() }`)

export const leave = script<[node: number], number>(`
redis.call('HDEL', p .. ':sent', ARGV[1])
return redis.call('ZREM', p .. ':nodes', ARGV[1])`)

/** Publishes an empty message for a node. */
export const ping = script<[node: number], null>(`publish(ARGV[1], '')`)

/** Stores a session, unless its principal has `most`. */
export const create = script<
  [
    node: number,
    id: string,
    principal: string,
    client: string,
    record: string,
    level: string,
    idle: number,
    most: number
  ],
  number
>(`
local id, principal, client, idle = ARGV[2], ARGV[3], ARGV[4], ARGV[7]
if principal ~= '' then
  redis.call('ZREMRANGEBYSCORE', p .. ':p:' .. principal, '-inf', now)
  if redis.call('ZCARD', p .. ':p:' .. principal) >= tonumber(ARGV[8]) then return 0 end
end
redis.call('HSET', p .. ':s:' .. id, 'r', ARGV[5], 'p', principal, 'c', client, 'i', 0, 'g', ARGV[6], 'l', ARGV[1],
  't', idle, 'n:' .. ARGV[1], 1)
use(id)
count(client)
return 1`)

/**
 * Returns the members of a session of a principal, and adds the node to those that have it. The commands for a session of
 * another principal are those for one that does not exist: the time of the answer does not tell which it is.
 */
export const find = script<[node: number, id: string, principal: string], ReadonlyArray<string>>(`
local key = p .. ':s:' .. ARGV[2]
local principal = redis.call('HGET', key, 'p')
if not isLive(ARGV[2]) or principal ~= ARGV[3] then return {} end
local members = redis.call('HGETALL', key)
for at = 1, #members, 2 do
  local node = string.match(members[at], '^n:(%d+)$')
  if node and not redis.call('ZSCORE', p .. ':nodes', node) then redis.call('HDEL', key, members[at]) end
end
redis.call('HSET', key, 'n:' .. ARGV[1], 1)
use(ARGV[2])
return members`)

/**
 * Changes a session and publishes a text, for this node only if it is echoed. Returns the nodes that must confirm it. An
 * empty text changes nothing.
 */
export const change = script<
  [
    node: number,
    id: string,
    text: string,
    isInitialized: number,
    level: string,
    listensAt: string,
    subscribe: string,
    unsubscribe: string,
    isEchoed: number
  ],
  ReadonlyArray<string>
>(`
local id, key, nodes = ARGV[2], p .. ':s:' .. ARGV[2], {}
if isLive(id) and redis.call('EXISTS', key) == 1 then
  if ARGV[4] == '1' then redis.call('HSET', key, 'i', 1) end
  if ARGV[5] ~= '' then redis.call('HSET', key, 'g', ARGV[5]) end
  if ARGV[6] ~= '' then redis.call('HSET', key, 'l', ARGV[6]) end
  if ARGV[7] ~= '' then redis.call('HSET', key, 'u:' .. ARGV[7], redis.call('HINCRBY', key, 'k', 1)) end
  if ARGV[8] ~= '' then redis.call('HDEL', key, 'u:' .. ARGV[8]) end
  nodes = others(id, ARGV[1])
  use(id)
end
return publishChange(ARGV[1], nodes, ARGV[3], ARGV[9] == '1')`)

/** Removes a session and publishes a text. Returns the nodes that must confirm it. */
export const end = script<[node: number, id: string, text: string], ReadonlyArray<string>>(`
local nodes = others(ARGV[2], ARGV[1])
remove(ARGV[2])
return publishChange(ARGV[1], nodes, ARGV[3], true)`)

/** Sessions were used. */
export const touch = script<Array<string>, null>(`
for _, id in ipairs(ARGV) do
  if isLive(id) then use(id) end
end`)

/** Publishes texts in order, each for a node, or for all nodes if it is empty. */
export const send = script<Array<string>, null>(`
for at = 1, #ARGV, 2 do
  local node, text = ARGV[at], ARGV[at + 1]
  if node == '' then publishAll(text)
  elseif redis.call('ZSCORE', p .. ':nodes', node) then publish(node, text) end
end`)

/** Removes expired sessions, and others above a number, or none if it is negative. Returns how many, and those others. */
export const clean = script<[most: number, limit: number], [number, ReadonlyArray<string>]>(`
local limit = tonumber(ARGV[2])
local expired = redis.call('ZRANGEBYSCORE', p .. ':sessions', '-inf', now, 'LIMIT', 0, limit)
for _, id in ipairs(expired) do remove(id) end
local ended = {}
local excess = math.min(redis.call('ZCARD', p .. ':sessions') - tonumber(ARGV[1]), limit)
while tonumber(ARGV[1]) >= 0 and #ended < excess do
  local client = redis.call('ZREVRANGE', p .. ':clients', 0, 0)[1]
  if not client then break end
  local id = redis.call('ZRANGE', p .. ':c:' .. client, 0, 0)[1]
  if id then
    remove(id, client)
    ended[#ended + 1] = id
  else count(client) end
end
return { #expired, ended }`)
