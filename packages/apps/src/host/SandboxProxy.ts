/**
 * The sandbox proxy of a host that is a web page: a document at another origin than the host, which loads the page of an
 * app into a frame and passes messages ("If the Host is a web page, it MUST wrap the View and communicate with it through
 * an intermediate Sandbox proxy").
 *
 * Serve it at an origin that serves nothing else and has no cookies, such as `https://sandbox.example.net`. The address
 * has the granted origins and permissions of an app, and the answer enforces them by headers, which the page inherits. The
 * page has an opaque origin: it reaches neither the host, nor the proxy, nor the storage of another app.
 *
 * @example
 * const sandbox = SandboxProxy.make({ hostOrigins: ["https://chat.example.com"] })
 * // Workers, Bun, Hono:
 * export default { fetch: (request: Request) => sandbox.handle(request) }
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { proxyScript } from "../shared/pageScripts.ts"
import type { Csp } from "../shared/UiMeta.ts"
import { ofResource, permissions as allPermissions } from "../shared/UiMeta.ts"
import * as UiPolicy from "../shared/UiPolicy.ts"

/** Options of a sandbox proxy. */
export interface Options extends UiPolicy.Options {
  /** The origins of the hosts that may show the proxy, such as `https://chat.example.com`. Others get no messages. */
  readonly hostOrigins: ReadonlyArray<string>
}

/** The most characters of a query. */
const maxQueryChars = 8_192

/** An answer, for servers without `Response`. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A sandbox proxy. */
export interface SandboxProxy {
  /** Answers a request. */
  readonly handle: (request: Request) => Response
  /** Makes the answer to a GET of an address. Only its query counts. */
  readonly answer: (url: string | URL) => Answer
}

const originOf = (text: string): string => {
  const origin = URL.canParse(text) ? new URL(text).origin : "null"
  if (origin === "null" || origin !== text) {
    throw new TypeError(`${JSON.stringify(text)} in hostOrigins is not an origin such as https://chat.example.com`)
  }
  return origin
}

const parsed = (text: string | null): unknown => {
  try {
    return JSON.parse(text ?? "{}")
  } catch {
    return undefined
  }
}

const text = (status: number, body: string): Answer => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
  body
})

/**
 * The query of the address for the frame of an app: `csp` and `permissions`. `AppFrame` adds it.
 *
 * @example
 * const src = `https://sandbox.example.net/?${SandboxProxy.query(session.policy)}`
 */
export const query = ({ csp, permissions }: Pick<UiPolicy.Policy, "csp" | "permissions">): string =>
  new URLSearchParams({
    ...(Object.keys(csp).length === 0 ? undefined : { csp: JSON.stringify(csp) }),
    ...(permissions.length === 0 ? undefined : { permissions: permissions.join(",") })
  }).toString()

/**
 * Makes a sandbox proxy. The origins and permissions of the query are parsed again, so that no address makes a wider
 * policy than `allowSource` and `allowPermission` allow. Here `allowPermission` allows all by default, because the host
 * has decided. Throws a `TypeError` if a host origin is not an origin.
 *
 * @example
 * const { body, headers, status } = sandbox.answer(request.url)
 * response.writeHead(status, headers).end(body)
 */
export const make = (options: Options): SandboxProxy => {
  const { allowPermission = () => true } = options
  const hostOrigins = options.hostOrigins.map(originOf)
  const answer = (url: string | URL): Answer => {
    // Node passes on what a client sent: `//`, for example.
    if (!URL.canParse(String(url), "http://localhost")) return text(400, "The address is not valid")
    const { search, searchParams } = new URL(url, "http://localhost")
    if (search.length > maxQueryChars) return text(414, `The query is longer than ${maxQueryChars} characters`)
    const csp = parsed(searchParams.get("csp"))
    if (!isObject(csp)) return text(400, "The parameter csp is not a JSON object")
    const asked = searchParams.get("permissions")?.split(",") ?? []
    const permissions = Object.fromEntries(allPermissions.flatMap((one) => asked.includes(one) ? [[one, {}]] : []))
    const policy = UiPolicy.make(ofResource({ _meta: { ui: { csp: csp as Csp, permissions } } }), {
      ...options,
      allowPermission
    })
    const settings = JSON.stringify({ hostOrigins, allow: policy.allow }).replaceAll("<", "\\u003c")
    return {
      status: 200,
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": `${policy.contentSecurityPolicy}; frame-ancestors ${hostOrigins.join(" ")}`,
        // The default of a frame of another origin, and the end of what a wrong `allow` of the host can grant.
        "permissions-policy": allPermissions.map((one) =>
          `${UiPolicy.featureOf(one)}=${policy.permissions.includes(one) ? "*" : "()"}`
        ).join(", "),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "cross-origin",
        "cache-control": "no-store"
      },
      body: [
        "<!doctype html><meta charset=\"utf-8\"><title>Sandbox</title>",
        "<style>html,body,iframe{margin:0;border:0;width:100%;height:100%;display:block}html{overflow:hidden}</style>",
        `<body><script type="application/json" id="settings">${settings}</script>`,
        `<script>${proxyScript}</script>`,
        ""
      ].join("\n")
    }
  }
  return {
    answer,
    handle: (request) => {
      if (request.method !== "GET" && request.method !== "HEAD") {
        return new Response(null, { status: 405, headers: { allow: "GET, HEAD" } })
      }
      const { body, headers, status } = answer(request.url)
      return new Response(request.method === "HEAD" ? null : body, { status, headers })
    }
  }
}
