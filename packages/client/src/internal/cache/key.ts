/**
 * What tells one response that is kept from another.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"

/** JSON with sorted members. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isObject(value)) return JSON.stringify(value) ?? "null"
  const members = Object.keys(value).sort().flatMap((key) =>
    value[key] === undefined ? [] : `${JSON.stringify(key)}:${canonical(value[key])}`
  )
  return `{${members.join()}}`
}

/** What of `_meta` may matter to the result: not what the protocol's own keys say about a request, a trace for instance. */
const foreign = (meta: unknown): JsonObject | undefined => {
  if (!isObject(meta)) return undefined
  const keys = Object.keys(meta).filter((key) => !MetaKey.isReserved(key))
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key) => [key, meta[key]]))
}

/**
 * The params that matter, as text: "Clients MUST NOT serve a cached response for a request whose method or parameters differ from
 * the request that produced it". Nothing where the result may not be kept, nor be taken from what is: "Results produced by requests
 * carrying `inputResponses` or `requestState` MUST NOT be cached".
 */
export const paramsOf = (params: unknown): string | undefined => {
  if (!isObject(params)) return "{}"
  if (params["inputResponses"] !== undefined || params["requestState"] !== undefined) return undefined
  return canonical({ ...params, _meta: foreign(params["_meta"]) })
}

/** The params of the reads that a change of a resource makes stale: its own, and those of what it may be a part of. */
export const readsOf = (uri: string): ReadonlyArray<string> => {
  const uris = [uri]
  // "This might be a sub-resource of the one that the client actually subscribed to."
  for (let at = uri.lastIndexOf("/"); at > 0 && uris.length < maxReads; at = uri.lastIndexOf("/", at - 1)) {
    uris.push(uri.slice(0, at + 1), uri.slice(0, at))
  }
  return uris.map((uri) => canonical({ uri }))
}

// More than any honest URI has parts.
const maxReads = 64
