/**
 * The names and URIs of a mounted part, inside of it and in the server around it.
 */
/** How a part is named in the server around it. */
export interface MountOptions {
  /** The prefix of the names of tools and prompts, and of URIs. None by default: names and URIs stay as they are. */
  readonly prefix?: string | undefined
  /** The text between the prefix and a name: `_` by default. */
  readonly separator?: string | undefined
  /** Makes the name of a tool or of a prompt in the server, instead of the prefix and the separator. */
  readonly name?: ((name: string, kind: "tool" | "prompt") => string) | undefined
  /**
   * `false` leaves URIs and URI templates as they are. Functions make the URI in the server, and find the URI in the part
   * again: `remove(add(uri))` must be `uri`, and `remove` returns `undefined` for a URI that `add` does not make. `add`
   * receives the texts of URI templates, too. By default the prefix is inserted after the scheme.
   */
  readonly uri?: false | {
    readonly add: (uri: string) => string
    readonly remove: (uri: string) => string | undefined
  } | undefined
}

/** Converts the names and URIs of a part to those of the server around it, and back. */
export interface Naming {
  readonly name: (own: string, kind: "tool" | "prompt") => string
  /** Converts a URI, or the text of a URI template. */
  readonly uri: (own: string) => string
  /** Returns the URI that the part has, or `undefined` for one that is not of the part. */
  readonly ownUri: (outside: string) => string | undefined
}

// A scheme and a colon, and the slashes before an authority.
const schemeOf = /^[a-z][a-z\d+.-]*:(?:\/\/)?/i

const unchanged = (uri: string): string => uri

/**
 * Inserts the prefix after the scheme: `shop://menu` becomes `shop://tea/menu`, `urn:isbn:1` becomes `urn:tea/isbn:1`. A
 * text without a scheme, such as the template `{+uri}`, is not a URI afterwards, but still another text for each prefix.
 */
const insertPrefix = (prefix: string) => (uri: string): string => {
  const scheme = schemeOf.exec(uri)?.[0] ?? ""
  return `${scheme}${prefix}/${uri.slice(scheme.length)}`
}

const removePrefix = (prefix: string) => (uri: string): string | undefined => {
  const scheme = schemeOf.exec(uri)?.[0]
  if (scheme === undefined || !uri.startsWith(`${prefix}/`, scheme.length)) return undefined
  return scheme + uri.slice(scheme.length + prefix.length + 1)
}

/** Makes the naming of a mount. Without a prefix nothing changes. */
export const make = (at: string | undefined | MountOptions): Naming => {
  const options = typeof at === "object" ? at : { prefix: at }
  const { prefix = "", separator = "_", uri } = options
  const name = options.name ?? (prefix === "" ? unchanged : (own: string) => prefix + separator + own)
  if (uri === false || (uri === undefined && prefix === "")) return { name, uri: unchanged, ownUri: unchanged }
  if (uri !== undefined) return { name, uri: uri.add, ownUri: uri.remove }
  return { name, uri: insertPrefix(prefix), ownUri: removePrefix(prefix) }
}
