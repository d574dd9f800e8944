/**
 * The work of fitting one schema to a provider: its cost, the changes that are reported, the names of properties, and
 * references. Each keyword, member and item costs a unit, and a long text costs more.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip, quote } from "@skein/protocol/Text"
import { fittedName } from "./propertyNames.ts"
import type { Rules } from "./providerRules.ts"

/** A part of a schema that was changed because the provider refuses it. */
export interface Change {
  /** The place, as the model writes it: `items[].price`. It is empty for the arguments as a whole. */
  readonly at: string
  /** The keyword, or another short name for the part that the provider refuses. */
  readonly refused: string
  /** The part that the schema no longer says, in words for the model. It is undefined if the meaning is the same. */
  readonly weakened: string | undefined
}

/** How many changes of one schema are listed. */
const maxChanges = 64

export interface Work {
  readonly rules: Rules
  readonly root: JsonObject
  left: number
  readonly changes: Array<Change>
  more: number
  /** The names of the server by their fitted names. */
  readonly originals: Map<string, string>
  readonly renamed: Map<string, string>
  /** The definitions that contain the present place, in a form that accepts most of JSON Schema. */
  readonly open: Set<unknown>
}

/** Pays for a value that is not a schema, such as a list of texts. False if it costs too much. */
export const spendAll = (work: Work, value: unknown): boolean => {
  if (work.left >= 0) work.left -= unitsOf(value, work.left + 1)
  return work.left >= 0
}

export type Entries = Array<readonly [string, unknown]>

export const spend = (work: Work, value?: unknown): boolean => {
  work.left -= typeof value === "string" ? 1 + (value.length >> 5) : 1
  return work.left >= 0
}

export const change = (work: Work, at: string, refused: string, weakened?: string): void => {
  if (work.changes.length < maxChanges) work.changes.push({ at: clip(at), refused, weakened })
  else work.more++
}

export const nameOf = (work: Work, name: string, at: string): string => {
  if (work.rules.names.test(name)) return name
  const known = work.renamed.get(name)
  if (known !== undefined) return known
  const fitted = fittedName(name, work.originals)
  work.renamed.set(name, fitted)
  work.originals.set(fitted, name)
  change(work, below(at, fitted), `the property name ${quote(name, 64)}`)
  return fitted
}

export const below = (at: string, name: string): string => clip(at === "" ? name : `${at}.${name}`, 256)

/** A value of a keyword in a note. Objects and lists are not written, so that a note costs little. */
export const written = (value: unknown): string =>
  typeof value === "string"
    ? quote(value, 64)
    : Array.isArray(value)
    ? value.slice(0, 16).map((item) => typeof item === "object" && item !== null ? "…" : written(item)).join(", ") +
      (value.length > 16 ? ", …" : "")
    : typeof value === "object" && value !== null
    ? "an object of the server"
    : String(value)

/** The schema that a local reference points to. */
export const resolve = (work: Work, ref: unknown): JsonObject | undefined => {
  if (typeof ref !== "string" || ref.length > 512 || !/^#(?:\/|$)/.test(ref)) return undefined
  let found: unknown = work.root
  for (const part of ref.split("/").slice(1)) {
    if (typeof found !== "object" || found === null) return undefined
    let name: string
    try {
      name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")
    } catch {
      return undefined
    }
    if (!Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return isObject(found) ? found : undefined
}

/** How many units a schema has, and at most `most`. */
export const unitsOf = (root: unknown, most: number): number => {
  let units = 0
  const open = [root]
  while (open.length > 0 && units < most) {
    const value = open.pop()
    units += typeof value === "string" ? 1 + (value.length >> 5) : 1
    if (typeof value !== "object" || value === null) continue
    for (const key of Object.keys(value)) {
      if (open.length + units > most) break
      open.push((value as Record<string, unknown>)[key])
    }
  }
  return units
}

/** Whether a pattern looks ahead or behind, which some engines of patterns cannot. */
export const hasLookaround = (pattern: unknown): boolean => typeof pattern === "string" && /\(\?<?[=!]/.test(pattern)
