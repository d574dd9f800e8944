/**
 * Names of tools that every provider of models takes, and that are each tool's own.
 */

/** A tool and where it is from. Without a server the tool's own name is what is shown. */
export interface ToolName {
  readonly server: string | undefined
  readonly tool: string
}

const longest = 64

/** FNV-1a, in eight hexadecimal digits. Nothing is secret here: it only has to be short, and the same each time. */
const digest = (text: string): string => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, "0")
}

/** What identifies a tool, unlike any other. */
const key = ({ server, tool }: ToolName): string => JSON.stringify([server ?? null, tool])

const plain = ({ server, tool }: ToolName): string =>
  (server === undefined ? tool : `${server}_${tool}`).replaceAll(/[^a-zA-Z0-9_-]/g, "_")

const digested = (named: ToolName, round: number): string =>
  `${plain(named).slice(0, longest - 9)}_${digest(`${round} ${key(named)}`)}`

/**
 * Gives each tool a name of 1 to 64 letters, digits, `_` and `-`.
 *
 * It is `<server>_<tool>` with `_` for whatever else is in there. Where that is too long, or the same for several, the digest of
 * the exact names stands at its end: at that of all of them, so that a name does not depend on who came first. What names tools
 * may be hostile and can make digests collide: then the next digest is tried, in an order that does not depend on it either.
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
