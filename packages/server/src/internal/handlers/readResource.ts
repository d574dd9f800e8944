/**
 * Finds the reader of a URI, runs readers, and makes the caching hints of their results.
 */
import type * as Wire from "@skein/protocol/Content"
import { isObject } from "@skein/protocol/JsonRpc"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import * as McpError from "@skein/protocol/McpError"
import { clip } from "@skein/protocol/Text"
import type { Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Caching from "../../Caching.ts"
import type { Catalog, Handled, Reader, ResourceEntry, TemplateEntry, Watch } from "../../Catalog.ts"
import * as Content from "../../Content.ts"
import type { HandlerError } from "../../HandlerError.ts"
import type { Entry } from "../../Registry.ts"
import { failWithMcpError } from "./handlerError.ts"
import { checkContents } from "../catalog/validateDefinition.ts"
import { nameOf, refuseAnswer } from "./wrongAnswer.ts"
import { isVisible } from "../catalog/entryStore.ts"

/** The value that a reader returns: text, bytes, contents made by `Content.resourceContents`, or the whole result. */
export type ResourceAnswer = string | Uint8Array | ReadonlyArray<Wire.AnyResourceContents> | ReadResourceResult

const expected = "return text, bytes, a list of Content.resourceContents(…), or { contents: [ … ] }"

/** Whether a value is the contents of a resource. Types refuse others, and untyped programs return them. */
const isContents = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => isObject(item) && typeof item["uri"] === "string")

/** Runs a reader and makes the result of `resources/read`. */
export const readResource = <E extends HandlerError>(
  read: Effect.Effect<ResourceAnswer, E, McpRequest>,
  uri: string,
  defaults: Caching.Hint & { readonly mimeType?: string | undefined }
): Handled<ReadResourceResult> => {
  const hint = Caching.toWire(defaults)
  return Effect.flatMap(Effect.catch(read, failWithMcpError), (body): Handled<ReadResourceResult> => {
    if (typeof body === "string" || body instanceof Uint8Array) {
      return Effect.succeed({ contents: [Content.resourceContents(uri, body, defaults.mimeType)], ...hint })
    }
    const whole = isObject(body) && "contents" in body ? body as ReadResourceResult : undefined
    const contents = whole?.contents ?? body as ReadonlyArray<Wire.AnyResourceContents>
    if (!isContents(contents)) {
      return refuseAnswer(`The reader of the resource ${clip(uri)} returned ${nameOf(body)}: ${expected}`)
    }
    checkContents(contents)
    return Effect.succeed(whole === undefined ? { contents, ...hint } : { ...hint, ...whole, ...Caching.toWire(whole) })
  })
}

/** Returns the entry that the reader of a URI belongs to. */
export const findReadable = (
  { resources, templates }: Catalog["Service"],
  uri: string,
  caller: Caller
): ResourceEntry | TemplateEntry | undefined => {
  const resource = resources.seen(uri, caller)
  if (resource !== undefined) return resource
  const matching = templates.sorted.filter(([, template]) =>
    isVisible(template, caller) && template.match(uri) !== undefined
  )
  return (matching.find(([, { unlisted }]) => unlisted !== true) ?? matching[0])?.[1]
}

/** Whether a caller may subscribe to a URI that has a reader for it: see `TemplateEntry.admits`. */
export const isAdmitted = (catalog: Catalog["Service"], uri: string, caller: Caller): Effect.Effect<boolean> => {
  const entry = findReadable(catalog, uri, caller)
  return entry !== undefined && "admits" in entry && entry.admits !== undefined
    ? entry.admits(uri, caller)
    : Effect.succeed(true)
}

/**
 * Returns the reader of a URI for a caller: of the resource with that URI, else of the first template that matches. Returns
 * the error if its guard refuses the caller.
 */
export const findReader = (
  { resources, templates }: Catalog["Service"],
  uri: string,
  caller: Caller
): Reader | McpError.McpError | undefined => {
  const resource = resources.seen(uri, caller)
  if (resource !== undefined) return guarded(resource, resource.read, caller)
  let unlisted: Reader | McpError.McpError | undefined
  for (const [, template] of templates.sorted) {
    if (!isVisible(template, caller)) continue
    const reading = template.match(uri)
    if (reading === undefined) continue
    const found = guarded(template, reading, caller)
    if (template.unlisted !== true) return found
    unlisted = unlisted === undefined ? found : either(unlisted, found)
  }
  return unlisted
}

/** Tries a second reader if the first one has no such resource. */
const either = (first: Reader | McpError.McpError, second: Reader | McpError.McpError): Reader | McpError.McpError => {
  if (McpError.isMcpError(first)) return second
  if (McpError.isMcpError(second)) return first
  return (request) =>
    Effect.catchIf(first(request), ({ reason }) => reason === "ResourceNotFound", () => second(request))
}

/** Returns the function that watches a URI for its subscribers, if its entry has one. */
export const findWatch = ({ resources, templates }: Catalog["Service"], uri: string): Watch | undefined => {
  const resource = resources.get(uri)
  if (resource !== undefined) return resource.watch
  const matching = templates.sorted.filter(([, { match }]) => match(uri) !== undefined).map(([, template]) => template)
  const listed = matching.find(({ unlisted }) => unlisted !== true)
  if (listed !== undefined) return listed.watch
  const watches = matching.flatMap(({ watch }) => watch ?? [])
  return watches.reduce<Watch | undefined>(
    (first, second) => first === undefined ? second : (uri) => Effect.catch(first(uri), () => second(uri)),
    undefined
  )
}

const guarded = ({ guard, visible }: Entry<unknown>, read: Reader, caller: Caller): Reader | McpError.McpError =>
  guard === undefined && visible === undefined ? read : guard?.(caller) ?? privately(read)

/**
 * Marks the result as private: an entry that only some callers may read must not be shared, even if its caching hints
 * allow it.
 */
const privately = (read: Reader): Reader => (request) =>
  Effect.map(read(request), (result) => ({ ...result, cacheScope: "private" }))
