/**
 * Measures a schema when its tool is listed, without writing it as JSON.
 */

const scalar = (value: unknown): number => typeof value === "string" ? value.length + 2 : 1

/**
 * A lower bound for the UTF-16 units of a value as JSON: escapes and long numbers are counted as shorter than they are.
 * It stops once the size is larger than `max`.
 */
export const sizeUpTo = (value: unknown, max: number): number => {
  if (typeof value !== "object" || value === null) return scalar(value)
  // Without recursion: the value may be nested deeper than the stack.
  const open: Array<object> = [value]
  let size = 0
  for (let next = open.pop(); next !== undefined && size <= max; next = open.pop()) {
    const isList = Array.isArray(next)
    // Two brackets, and a comma after each member but the last.
    size += 1
    for (const key in next) {
      const member = (next as { readonly [key: string]: unknown })[key]
      size += isList ? 1 : key.length + 4
      if (typeof member === "object" && member !== null) open.push(member)
      else size += scalar(member)
      if (size > max) break
    }
  }
  return size
}
