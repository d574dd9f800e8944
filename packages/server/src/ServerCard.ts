/**
 * Experimental: documents by which clients find a server before they connect to it (SEP-2127). The server card, at
 * `<path of the endpoint>/server-card`, has the name, the address and the revisions of the server. The AI Catalog, at
 * `/.well-known/ai-catalog.json`, has the addresses of the cards of a domain.
 *
 * Neither lists tools, resources or prompts. Both are public, whatever the `protection` of the endpoint is. The proposal
 * has changed the paths before, and may do so again: this module follows it in minor versions.
 *
 * @example
 * NodeHttp.runMain(Server, {
 *   allowedHosts: ["example.com"],
 *   serverCard: ServerCard.make({ url: "https://example.com/mcp" })
 * })
 */
import { isLoopback } from "@skein/protocol/Hostname"
import * as Digest from "@skein/runtime/Digest"
import * as Effect from "effect/Effect"
import type { Pages } from "./Http.ts"
import { omitUndefined } from "./internal/base/json.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import * as McpServer from "./McpServer.ts"

/** A header that each request needs or may have, such as that of an API key. */
export interface Header {
  readonly name: string
  readonly description?: string | undefined
  /** Whether a request without the header is refused: `false` by default. */
  readonly isRequired?: boolean | undefined
  /** Whether the value is a secret, which clients hide: `false` by default. */
  readonly isSecret?: boolean | undefined
}

/** Where the source code of a server is. */
export interface Repository {
  readonly url: string
  /** The service that has it, such as `github`. */
  readonly source: string
  /** The folder of the server in the repository. */
  readonly subfolder?: string | undefined
  /** The identifier of the repository in that service. */
  readonly id?: string | undefined
}

/** Options of a card. The title, the version, the icons, the website and the revisions are those of the server. */
export interface Options {
  /**
   * The public URL of the endpoint, as clients reach it: an https address, or http on this machine. The path of the
   * card is the path of this URL and `/server-card`. A proxy that changes paths must pass it on as it is.
   */
  readonly url: string
  /**
   * The name of the server, a reversed domain and a name: `com.example/weather`. By default the domain of the URL, and
   * the name of the server with `-` for other characters than letters, digits, `.`, `_` and `-`.
   */
  readonly name?: string | undefined
  /**
   * The server in at most 100 characters. By default the description of the server, or else its title or name.
   */
  readonly description?: string | undefined
  readonly repository?: Repository | undefined
  /** Headers of each request. Do not list `Authorization` for OAuth: clients find that automatically. */
  readonly headers?: ReadonlyArray<Header> | undefined
  /**
   * Whether `/.well-known/ai-catalog.json` is answered, with this card: `true` by default. Set it to `false` for all
   * servers but one of a domain, and where the domain has a catalog of its own.
   */
  readonly catalog?: boolean | undefined
}

const cardType = "application/mcp-server-card+json"
const catalogType = "application/ai-catalog+json"

/** The path of the catalog of a domain. */
const catalogPath = "/.well-known/ai-catalog.json"

const cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"

const maxText = 100

/** Reverses a domain or a namespace. An address of IPv4 stays as it is. */
const reverse = (domain: string): string => /^[\d.]+$/.test(domain) ? domain : domain.split(".").toReversed().join(".")

const nameOf = ({ hostname }: URL, server: string): string =>
  isName(server) ? server : `${reverse(hostname)}/${server.replaceAll(/[^\w.-]+/g, "-")}`

const isName = (name: string): boolean => name.length <= 200 && /^[a-zA-Z0-9.-]+\/[\w.-]+$/.test(name)

/** "Version ranges are rejected": `^1.2.3`, `>=1.2.3`, `1.x` and so on. */
const isRange = (version: string): boolean => /^[\^~<>=]|(?:^|\.)[x*](?:\.|$)/i.test(version)

/** Why a text of the server cannot be in a card; undefined if it can. */
const lengthProblem = (member: string, text: string, option: string): string | undefined =>
  text.length >= 1 && text.length <= maxText
    ? undefined
    : `the ${member} of a card has 1 to ${maxText} characters, and not ${text.length}: ${option}`

/** The URL of the endpoint. Throws if it is not one that clients can be sent to. */
const endpointOf = (text: string): URL => {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hash !== "" || url.username + url.password !== "") {
    throw new TypeError(`ServerCard: url must be an http or https address without a fragment or a user: ${text}`)
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new TypeError(`ServerCard: url must be an https address, or http on this machine: ${text}`)
  }
  return url
}

/** The card of a server, or why it has none. */
const cardOf = (
  { description, headers, name, repository }: Options,
  url: URL,
  { options: server, [internals]: { revisions } }: McpServer.McpServer["Service"]
): { readonly name: string } | string => {
  const { icons, title, version, websiteUrl } = server
  const card = {
    $schema: cardSchema,
    name: name ?? nameOf(url, server.name),
    version,
    title,
    description: description ?? server.description ?? title ?? server.name,
    websiteUrl,
    repository: repository && omitUndefined(repository),
    icons: icons?.map((icon) => omitUndefined(icon)),
    remotes: [
      omitUndefined({
        type: "streamable-http",
        url: url.href,
        supportedProtocolVersions: revisions,
        headers: headers?.map((header) => omitUndefined(header))
      })
    ]
  }
  if (!isName(card.name)) {
    return `the name of a card is a reversed domain, "/" and a name, such as com.example/weather, and not ${card.name}: ` +
      "set the option name of ServerCard.make"
  }
  if (version === "" || version.length > 255 || isRange(version)) {
    return `the version of a card is one version of at most 255 characters, such as 1.0.2, and not ${version}`
  }
  const problem = lengthProblem("description", card.description, "set the option description of ServerCard.make") ??
    (title === undefined ? undefined : lengthProblem("title", title, "shorten the title of the server"))
  return problem ?? omitUndefined(card)
}

/** The entry of a card in a catalog: `com.example/weather` is `urn:air:example.com:mcp:weather`. */
const catalogOf = ({ name }: { readonly name: string }, cardUrl: string) => {
  const [namespace, local] = name.split("/")
  return {
    specVersion: "1.0",
    entries: [{ identifier: `urn:air:${reverse(namespace!)}:mcp:${local}`, type: cardType, url: cardUrl }]
  }
}

/** "Hosted Server Card endpoints MUST include appropriate CORS headers to allow browser-based clients." */
const shared = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET",
  "access-control-allow-headers": "Content-Type, If-None-Match",
  "access-control-expose-headers": "ETag"
}

/** Answers the requests for a document that does not change. */
const pageOf = (document: object, type: string): Effect.Effect<Pages["handle"]> => {
  const body = JSON.stringify(document)
  return Effect.map(Digest.sha256Base64Url(body), (digest): Pages["handle"] => {
    const etag = `"${digest}"`
    const cached = { ...shared, "cache-control": "public, max-age=3600", etag }
    const isCurrent = (given: string): boolean =>
      given.split(",").some((each) => each.trim() === "*" || each.trim().replace(/^W\//, "") === etag)
    return (request, answer) => {
      if (request.method === "OPTIONS") answer.reply(204, { ...shared, "access-control-max-age": "7200" }, "")
      else if (request.method !== "GET" && request.method !== "HEAD") {
        answer.reply(405, { ...shared, allow: "GET, HEAD, OPTIONS" }, "")
      } else if (isCurrent(request.header("if-none-match") ?? "")) answer.reply(304, cached, "")
      else answer.reply(200, { ...cached, "content-type": type }, body)
      return true
    }
  })
}

const pathOf = (url: URL): string => `${url.pathname.replace(/\/+$/, "")}/server-card`

/**
 * The paths of the card and of the catalog, for a router that passes single paths. Throws if the URL is not valid.
 *
 * @example
 * app.all(ServerCard.paths({ url: "https://example.com/mcp" }), handler)
 */
export const paths = ({ catalog, url }: Pick<Options, "catalog" | "url">): Array<string> => [
  pathOf(endpointOf(url)),
  ...(catalog === false ? [] : [catalogPath])
]

/**
 * Makes the card of a server, and the catalog with it: the value of the option `serverCard` of every HTTP adapter. Their
 * requests pass the check of Host. Pages of every origin may read them, and no credentials are needed. An answer may be
 * cached for an hour, and has an `ETag`.
 *
 * Throws if the URL is not valid. The effect dies if the card would not be valid: with a description or a title of more
 * than 100 characters, a version that is a range, or a name that is not one of a card.
 *
 * @example
 * const serverCard = ServerCard.make({
 *   url: "https://example.com/mcp",
 *   name: "com.example/tea-house",
 *   repository: { source: "github", url: "https://github.com/example/tea-house" }
 * })
 */
export const make = (options: Options): Effect.Effect<Pages, never, McpServer.McpServer> => {
  const url = endpointOf(options.url)
  const path = pathOf(url)
  return Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const card = cardOf(options, url, server)
    if (typeof card === "string") return yield* Effect.die(new TypeError(`${server.options.name} has no card: ${card}`))
    const pages = new Map([[path, yield* pageOf(card, cardType)]])
    if (options.catalog !== false) {
      pages.set(catalogPath, yield* pageOf(catalogOf(card, `${url.origin}${path}`), catalogType))
    }
    return {
      paths: [...pages.keys()],
      handle: (request, answer) => pages.get(request.path)?.(request, answer) === true
    }
  })
}
