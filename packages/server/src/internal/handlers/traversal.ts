/**
 * Finds the values of template variables that leave a folder if a reader uses them as a path.
 *
 * Values arrive percent-decoded, so `..%2F` is `../`. A value that is encoded twice is checked as its decoded form too:
 * the reader may put it into a URL, whose parser reads `%2e%2e` as `..`.
 */
import type * as UriTemplate from "@skein/protocol/UriTemplate"

// `..` between separators of either system, also with the spaces that Windows ignores; a path that starts at a root, a
// drive included; and NUL.
const unsafe = /(?:^|[\\/])\.\. *(?:$|[\\/])|^[\\/]|^[a-z]:|\0/i

const encoded = /%(?:2e|2f|5c|3a|20|25|00)/gi

/** How often a value is decoded again. One that is still encoded then is unsafe. */
const maxDecodings = 3

/** Whether a value, or its percent-decoded form, leaves the folder that a path is relative to. */
export const leavesFolder = (value: string): boolean => {
  let text = value
  for (let left = maxDecodings; !unsafe.test(text); left--) {
    const decoded = text.replace(encoded, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    if (decoded === text) return false
    if (left === 0) return true
    text = decoded
  }
  return true
}

/**
 * Makes the function that finds such a value. The variables of queries and fragments are not parts of a path, and one at
 * the start of the template (`{+uri}`) is a whole URI.
 */
export const finder = (template: UriTemplate.UriTemplate): (values: UriTemplate.Values) => boolean => {
  const names = template.parts.flatMap((part, index) =>
    typeof part === "string" || index === 0 || "?&#".includes(part.operator) && part.operator !== ""
      ? []
      : part.variables.map(({ name }) => name)
  )
  return (values) =>
    names.some((name) => {
      const value = values[name]
      if (value === undefined) return false
      // A reader may join the texts of a list, or use each of them.
      return typeof value === "string" ? leavesFolder(value) : leavesFolder(value.join("/")) || value.some(leavesFolder)
    })
}
