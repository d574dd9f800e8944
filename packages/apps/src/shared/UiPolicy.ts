/**
 * The policy of a page: the Content Security Policy and the permissions that a host grants. For hosts, and for servers
 * that check their own declarations.
 *
 * A server declares origins as text, and a text such as `https://a.example; script-src *` must not change the policy.
 * So each text is parsed, and the policy contains the parsed form. A text that is not an origin with an optional path, that `allowSource`
 * refuses, or that is beyond the first 100 is left out and listed in `rejected`: "Host MAY further restrict but MUST
 * NOT allow undeclared domains".
 */
import { quote } from "@skein/protocol/Text"
import type { Csp, CspMember, Permission, ResourceMeta } from "./UiMeta.ts"
import { cspMembers, permissions } from "./UiMeta.ts"

/** The decisions of a host about the declarations of a page. */
export interface Options {
  /**
   * Decides whether a page may use an origin, for the use that `member` names. All declared origins by default. `source` is
   * the origin without the path that an entry may have.
   */
  readonly allowSource?: ((source: string, member: CspMember) => boolean) | undefined
  /** Decides whether a page gets a capability of the browser. None by default. */
  readonly allowPermission?: ((permission: Permission) => boolean) | undefined
}

/** A declaration that the policy does not contain. */
export interface Rejected {
  readonly member: CspMember | "permissions"
  /** The declared origin or permission, shortened. */
  readonly value: string
  readonly reason: "invalid" | "refused" | "tooMany"
}

/** The policy of a page. */
export interface Policy {
  /** The value of the header `Content-Security-Policy` for the page. */
  readonly contentSecurityPolicy: string
  /** The value of the attribute `allow` of the frame: empty without permissions. */
  readonly allow: string
  /** The granted origins, with their paths. */
  readonly csp: Csp
  /** The granted permissions. */
  readonly permissions: ReadonlyArray<Permission>
  readonly rejected: ReadonlyArray<Rejected>
}

// Names of hosts may have underscores in practice, as those of buckets do.
const label = "[a-z\\d_](?:[a-z\\d_-]{0,61}[a-z\\d_])?"
const source = /* @__PURE__ */ new RegExp(
  `^((?:https?|wss?)://)?((?:\\*\\.)?${label}(?:\\.${label})*|\\[[\\da-f:.]{2,45}\\])(:(?:\\d{1,5}|\\*))?(/[^]*)?$`,
  "i"
)

/** The path of a source: characters of a URI but `;` and `,`, which end a directive and a policy. */
const sourcePath = /^\/(?:[\w.~!$&'()*+=:@/-]|%[\da-f]{2})*$/i

/** The number of characters of the longest entry: a name of 253 characters, with a scheme, a wildcard, a port and a path. */
const maxSourceChars = 512

/** The parts of an entry: its origin, and its path if it has one. */
const partsOf = (text: string): { readonly origin: string; readonly path: string } | undefined => {
  if (text.length > maxSourceChars) return undefined
  const [, scheme = "https://", host, port = "", path = ""] = source.exec(text) ?? []
  if (host === undefined || (path !== "" && !sourcePath.test(path))) return undefined
  return { origin: `${scheme}${host}${port}`.toLowerCase(), path: path === "/" ? "" : path }
}

/**
 * Returns an origin, with a path if the text has one, in the form that a policy has; `undefined` if a text is neither. A host
 * without a scheme gets `https`. A path that ends with `/` stands for everything below it. Keywords (`'unsafe-eval'`),
 * schemes alone (`data:`), `*`, queries and fragments are refused.
 *
 * @example
 * UiPolicy.sourceOf("api.example.com")            // "https://api.example.com"
 * UiPolicy.sourceOf("https://my_cdn.example/v2/") // "https://my_cdn.example/v2/"
 * UiPolicy.sourceOf("*")                          // undefined
 */
export const sourceOf = (text: string): string | undefined => {
  const parts = partsOf(text)
  return parts && parts.origin + parts.path
}

const features: Readonly<Record<Permission, string>> = {
  camera: "camera",
  microphone: "microphone",
  geolocation: "geolocation",
  clipboardWrite: "clipboard-write"
}

/**
 * Returns the name of a permission in the attribute `allow` and in the header `Permissions-Policy`.
 *
 * @example
 * UiPolicy.featureOf("clipboardWrite") // "clipboard-write"
 */
export const featureOf = (permission: Permission): string => features[permission]

/**
 * Writes the Content Security Policy for granted origins: that of the extension ("CSP construction from metadata"),
 * and without forms that send to an address, because they would send data past `connect-src`.
 *
 * @example
 * UiPolicy.contentSecurityPolicy({ connectDomains: ["https://api.example.com"] })
 */
export const contentSecurityPolicy = (csp: Csp): string => {
  const of = (member: CspMember, otherwise: string): string => {
    const list = csp[member] ?? []
    return list.length === 0 ? otherwise : list.join(" ")
  }
  const resources = of("resourceDomains", "")
  const from = (...own: ReadonlyArray<string>): string => [...own, ...(resources === "" ? [] : [resources])].join(" ")
  return [
    "default-src 'none'",
    `script-src ${from("'self'", "'unsafe-inline'")}`,
    `style-src ${from("'self'", "'unsafe-inline'")}`,
    `img-src ${from("'self'", "data:")}`,
    `font-src ${from("'self'", "data:")}`,
    `media-src ${from("'self'", "data:")}`,
    `connect-src ${of("connectDomains", "'none'")}`,
    `frame-src ${of("frameDomains", "'none'")}`,
    "object-src 'none'",
    `base-uri ${of("baseUriDomains", "'self'")}`,
    "form-action 'none'"
  ].join("; ")
}

/** The most origins of all declarations. */
const maxSources = 100

/**
 * Makes the policy of a page from its metadata.
 *
 * @example
 * const policy = UiPolicy.make(UiMeta.ofResource(contents), {
 *   allowSource: (source) => source.endsWith(".example.com"),
 *   allowPermission: (permission) => permission === "clipboardWrite"
 * })
 */
export const make = (meta: ResourceMeta, options: Options = {}): Policy => {
  const { allowPermission, allowSource } = options
  const rejected: Array<Rejected> = []
  const granted: Partial<Record<CspMember, ReadonlyArray<string>>> = {}
  let count = 0
  for (const member of cspMembers) {
    const sources = new Set<string>()
    for (const text of meta.csp?.[member] ?? []) {
      const parts = partsOf(text)
      const source = parts && parts.origin + parts.path
      const reason = source === undefined
        ? "invalid"
        : sources.has(source)
        ? undefined
        : count >= maxSources
        ? "tooMany"
        : allowSource?.(parts!.origin, member) === false
        ? "refused"
        : undefined
      if (reason !== undefined) rejected.push({ member, value: quote(text), reason })
      else if (!sources.has(source!)) {
        sources.add(source!)
        count++
      }
    }
    if (sources.size > 0) granted[member] = [...sources]
  }
  const asked = permissions.filter((permission) => meta.permissions?.[permission] !== undefined)
  const allowed = asked.filter((permission) => allowPermission?.(permission) === true)
  for (const value of asked) {
    if (!allowed.includes(value)) rejected.push({ member: "permissions", value, reason: "refused" })
  }
  return {
    contentSecurityPolicy: contentSecurityPolicy(granted),
    allow: allowed.map((permission) => `${featureOf(permission)} *`).join("; "),
    csp: granted,
    permissions: allowed,
    rejected
  }
}
