/**
 * Finds the parts of a document that its references name.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { InvalidReference, OpenApiError } from "../../OpenApiError.ts"

/** The versions of OpenAPI, whose rules differ. */
export type Version = "3.0" | "3.1" | "3.2"

/** A loaded document, in which each reference is local. */
export interface Document {
  readonly root: JsonObject
  readonly url: URL | undefined
  readonly version: Version
}

/** The most references that lead to each other. */
const maxChain = 32

const invalid = (reference: string, why: string): OpenApiError =>
  new OpenApiError({
    reason: new InvalidReference({ message: `The reference ${quote(reference, 300)} ${why}`, reference })
  })

/** Reads a part of a JSON Pointer in a URL. */
export const decodePart = (part: string): string => {
  const decoded = Result.getOrElse(Result.try(() => decodeURIComponent(part)), () => part)
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~")
}

/** Writes a JSON Pointer. */
export const pointer = (...keys: ReadonlyArray<string | number>): string =>
  `#${keys.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")}`

const step = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as JsonObject)[key]
    : undefined

const faults = new WeakMap<JsonObject, ReadonlyMap<string, OpenApiError>>()

/** Remembers why references of a document lead to nothing: their documents could not be loaded. */
export const setFaults = (root: JsonObject, each: ReadonlyMap<string, OpenApiError>): void => {
  faults.set(root, each)
}

/** Whether the document has a part at a place. */
export const has = (root: JsonObject, place: string): boolean => Result.isSuccess(Result.try(() => find(root, place)))

/** Returns the value of a local reference (`#/components/schemas/Pet`). Throws `OpenApiError` if there is none. */
export const find = (root: JsonObject, reference: string): unknown => {
  const fault = faults.get(root)?.get(reference)
  if (fault !== undefined) throw fault
  if (!reference.startsWith("#")) throw invalid(reference, "leads to another document")
  if (!/^#(?:\/|$)/.test(reference)) throw invalid(reference, "leads to nothing")
  let value: unknown = root
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = decodePart(part)
    let next = step(value, key)
    // A pointer may pass through a part that is a reference itself.
    if (next === undefined && isObject(value) && typeof value["$ref"] === "string") {
      next = step(resolve(root, value), key)
    }
    value = next
  }
  if (value === undefined) throw invalid(reference, "leads to nothing")
  return value
}

/**
 * Returns a part of the document, or the part that it refers to. Throws `OpenApiError` for a reference to nothing and
 * for a circle.
 */
export const resolve = (root: JsonObject, node: unknown): unknown => {
  let value = node
  for (let count = 0; isObject(value) && typeof value["$ref"] === "string"; count++) {
    if (count === maxChain) throw invalid(value["$ref"], "leads in a circle")
    value = find(root, value["$ref"])
  }
  return value
}

/** Returns the object that a part is or refers to, or an empty one. */
export const objectAt = (root: JsonObject, node: unknown): JsonObject => {
  const value = resolve(root, node)
  return isObject(value) ? value : {}
}
