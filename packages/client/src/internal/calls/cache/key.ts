/**
 * The part of the params that identifies a stored response.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"

/** The members of `_meta` that may affect the result. The protocol's own keys, such as a trace, do not. */
const foreign = (meta: unknown): JsonObject | undefined => {
  if (!isObject(meta)) return undefined
  const keys = Object.keys(meta).filter((key) => !MetaKey.isReserved(key))
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key) => [key, meta[key]]))
}

/**
 * The relevant params as text: "Clients MUST NOT serve a cached response for a request whose method or parameters
 * differ from the request that produced it". `undefined` if the result may neither be stored nor be returned from the
 * store: "Results produced by requests carrying `inputResponses` or `requestState` MUST NOT be cached".
 */
export const paramsOf = (params: unknown): string | undefined => {
  if (!isObject(params)) return "{}"
  if (params["inputResponses"] !== undefined || params["requestState"] !== undefined) return undefined
  return CanonicalJson.stringify({ ...params, _meta: foreign(params["_meta"]) })
}

/**
 * The params of the reads that a change of a resource invalidates: reads of the resource, and of each resource that may
 * contain it.
 */
export const readsOf = (uri: string): ReadonlyArray<string> => {
  const uris = [uri]
  // "This might be a sub-resource of the one that the client actually subscribed to."
  for (let at = uri.lastIndexOf("/"); at > 0 && uris.length < maxReads; at = uri.lastIndexOf("/", at - 1)) {
    uris.push(uri.slice(0, at + 1), uri.slice(0, at))
  }
  return uris.map((uri) => CanonicalJson.stringify({ uri }))
}

// A legitimate URI has fewer parts than this.
const maxReads = 64
