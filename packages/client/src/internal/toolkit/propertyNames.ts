/**
 * Names of properties that a provider of models accepts, and the way back to those of the server.
 */
import * as Json from "@skein/protocol/Json"
import { cut } from "@skein/protocol/Text"
import { digest } from "./names.ts"

const longest = 64

/**
 * A name of letters, digits and `_` for the name of a property. It ends with a digest of the exact name, so that it is not
 * a name in the data of a call by accident: the names in free objects are of no schema.
 */
export const fittedName = (name: string, taken: ReadonlyMap<string, string>): string => {
  const plain = cut(name, longest).replaceAll(/[^a-zA-Z0-9_]/g, "_")
  const start = cut(/^\d/.test(plain) ? `_${plain}` : plain, longest - 9)
  // A hostile server can make digests collide.
  let round = 0
  while (taken.has(`${start}_${digest(`${round} ${name}`)}`)) round++
  return `${start}_${digest(`${round} ${name}`)}`
}

/** How deep arguments are that have their names restored. The names further inside stay. */
const maxArgumentDepth = 256

/** Arguments with the names of the server, in objects and lists at every depth. */
export const restoreNames = (args: object, originals: ReadonlyMap<string, string>): object => {
  const restore = (value: unknown, depth: number): unknown => {
    if (typeof value !== "object" || value === null || depth > maxArgumentDepth) return value
    const renamed = (name: string): string => originals.get(name) ?? name
    const copy = Array.isArray(value)
      ? value.map((item) => restore(item, depth + 1))
      : Object.fromEntries(Object.entries(value).map(([name, item]) => [renamed(name), restore(item, depth + 1)]))
    // Exact numbers stay exact.
    Json.carry(value, copy, renamed)
    return copy
  }
  return restore(args, 0) as object
}
