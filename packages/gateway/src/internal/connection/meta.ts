/**
 * The `_meta` of messages that pass through a proxy. The keys that belong to one of its two connections are left out.
 */
import type { InputRequest } from "@skein/protocol/InputRequired"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"

/** The keys that a connection sets itself. */
const ofConnection: ReadonlySet<string> = new Set([
  RequestMeta.protocolVersion,
  RequestMeta.clientInfo,
  RequestMeta.clientCapabilities,
  RequestMeta.logLevel,
  RequestMeta.serverInfo,
  RequestMeta.subscriptionId,
  RequestMeta.relatedTask,
  RequestMeta.progressToken
])

/** The members of `_meta` that concern the other side too. Undefined if there are none. */
export const passedOn = (meta: unknown): JsonObject | undefined => {
  if (!isObject(meta)) return undefined
  const kept = Object.entries(meta).filter(([key]) => !ofConnection.has(key))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** A result, or the params of a request, with the members of `_meta` that concern the other side. */
export const withPassedOnMeta = <A extends object>(value: A): A => {
  const { _meta, ...rest } = value as { readonly _meta?: unknown }
  if (_meta === undefined) return value
  const meta = passedOn(_meta)
  return (meta === undefined ? rest : { ...rest, _meta: meta }) as A
}

/**
 * An input request without the members that belong to the connection to the remote server: its progress token, and the
 * augmentation with a task (2025-11-25), which the client of the proxy handles.
 */
export const omitMeta = (question: InputRequest): InputRequest => {
  if (question.params === undefined) return question
  const { task: _, ...params } = withPassedOnMeta(question.params) as { readonly task?: unknown }
  return { ...question, params } as InputRequest
}
