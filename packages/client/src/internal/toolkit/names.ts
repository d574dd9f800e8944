/**
 * Unique names of tools that all providers of models accept.
 */
import { cut } from "@skein/protocol/Text"

/** A tool and its server. Without a server the name is the tool's own. */
export interface ToolName {
  readonly server: string | undefined
  readonly tool: string
  /** The name that the host chose, in place of `<server>_<tool>`. */
  readonly name?: string | undefined
}

const longest = 64

/** FNV-1a, in eight hexadecimal digits. The digest protects no secret. It must only be short and always the same. */
export const digest = (text: string): string => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, "0")
}

/** A unique key of a tool. */
const key = ({ server, tool }: ToolName): string => JSON.stringify([server ?? null, tool])

/** The name without a digest. */
export const plain = ({ name, server, tool }: ToolName): string =>
  (name ?? (server === undefined ? tool : `${server}_${tool}`)).replaceAll(/[^a-zA-Z0-9_-]/g, "_")

const digested = (named: ToolName, round: number): string =>
  `${cut(plain(named), longest - 9)}_${digest(`${round} ${key(named)}`)}`

/**
 * Gives each tool a name of 1 to 64 letters, digits, `_` and `-`.
 *
 * The name is `<server>_<tool>`, or the one that the host chose, with `_` for each other character. A name that is too
 * long, or that several tools would have, ends with a digest of the exact names. All of these tools get a digest, so that names do not depend on
 * the order of the tools. A hostile server can make digests collide. Then the next digest is tried, in the order of the
 * keys, which does not depend on the order of the tools either.
 */
export const uniqueNames = (all: ReadonlyArray<ToolName>): ReadonlyArray<string> => {
  const count = new Map<string, number>()
  for (const named of all) count.set(plain(named), (count.get(plain(named)) ?? 0) + 1)
  const isFree = (name: string): boolean => name !== "" && name.length <= longest && count.get(name) === 1
  const taken = new Set(Array.from(count.keys()).filter(isFree))
  const names = all.map((named) => isFree(plain(named)) ? plain(named) : "")
  const left = all.map((named, at) => ({ named, at, key: key(named) }))
    .filter(({ at }) => names[at] === "")
    .sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
  for (const { at, named } of left) {
    let round = 0
    while (taken.has(digested(named, round))) round++
    names[at] = digested(named, round)
    taken.add(names[at])
  }
  return names
}
