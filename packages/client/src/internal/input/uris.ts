/**
 * Which URIs may be roots.
 */

/**
 * What is wrong with the URI of a root, if anything is. "This MUST be a `file://` URI"; "Clients MUST: […] Validate all
 * root URIs to prevent path traversal" (roots, data types and security considerations).
 */
export const problem = (uri: string): string | undefined => {
  if (!/^file:\/\//i.test(uri) || !URL.canParse(uri)) return "is no file:// URI"
  const path = uri.slice("file://".length).split(/[?#]/, 1)[0]!
  if (path.includes("\\") || /%(?:00|2f|5c)/i.test(path)) return "has an encoded separator, a backslash or a null byte"
  const segments = path.replaceAll(/%2e/gi, ".").split("/")
  return segments.includes("..") || segments.includes(".") ? "has a segment that leads elsewhere" : undefined
}
