/**
 * The lines of a configuration's members, for messages. They are searched only when there is a message.
 */

/** The texts of configurations, without comments, by the values that were parsed from them. */
const texts = new WeakMap<object, string>()

/** Remembers the text of a parsed configuration. */
export const remember = <A>(text: string, value: A): A => {
  if (typeof value === "object" && value !== null) texts.set(value, text)
  return value
}

// A string with the colon after it, if it is the name of a member; or a bracket or a comma.
const token = /"(?:[^"\\]|\\[^])*"(\s*:)?|[[\]{},]/g

/**
 * The line, from 1, of the member with a path in a configuration: of the last one, if it occurs several times, and of
 * the nearest member above it, if it does not occur. `undefined` for a configuration that was not parsed here.
 */
export const lineOf = (config: unknown, path: ReadonlyArray<string>): number | undefined => {
  const text = typeof config === "object" && config !== null ? texts.get(config) : undefined
  if (text === undefined) return undefined
  // The names above the present position; "" in an array.
  const names: Array<string> = []
  let found = 0
  let at: number | undefined
  for (const { 0: part, 1: colon, index } of text.matchAll(token)) {
    if (part === "{" || part === "[") names.push("")
    else if (part === "}" || part === "]") names.pop()
    else if (colon !== undefined) {
      names[names.length - 1] = JSON.parse(part.slice(0, part.lastIndexOf("\"") + 1))
      const depth = names.length
      if (depth < found || depth > path.length || names.some((name, index) => name !== path[index])) continue
      found = depth
      at = index
    }
  }
  return at === undefined ? undefined : text.slice(0, at).split("\n").length
}
