/**
 * The memory that parsed JSON takes.
 */

// About the memory of V8 for an object or an array, for a member of an object, and for any other value. Many of them fit
// into few characters of JSON: `[[],[],[]]`.
const containerBytes = 64
const memberBytes = 16
const valueBytes = 16

/**
 * About how many bytes a JSON value retains. A character of a string counts as one byte; a string with a character
 * beyond Latin-1 needs twice as much.
 */
export const memoryOf = (value: unknown): number => {
  const left: Array<unknown> = [value]
  let bytes = 0
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === "string") bytes += valueBytes + next.length
    else if (typeof next !== "object" || next === null) bytes += valueBytes
    else if (Array.isArray(next)) {
      bytes += containerBytes
      for (const item of next) left.push(item)
    } else {
      bytes += containerBytes
      for (const key in next) {
        bytes += memberBytes + key.length
        left.push((next as { readonly [key: string]: unknown })[key])
      }
    }
  }
  return bytes
}
