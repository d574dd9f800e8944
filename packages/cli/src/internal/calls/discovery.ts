/**
 * Finds the servers of a domain: its AI Catalog at `/.well-known/ai-catalog.json`, and the server cards that this lists
 * (SEP-2127). The proposal is experimental, so drafts of it are read too.
 *
 * A catalog and its cards are claims of the domain. Nothing is sent to an address that they name but requests for cards,
 * and, for a person who inspects the domain, an MCP connection without headers of the command line.
 */
import { isLoopback, mayBeLocal } from "@skein/protocol/Hostname"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { Colors } from "../base/colors.ts"
import { quoteLine, quoteName, readJsonBody } from "../base/format.ts"
import { type CommandFailed, failed } from "../base/process.ts"
import { cell, denseTable } from "../base/textTable.ts"

const catalogType = "application/ai-catalog+json"
const cardType = "application/mcp-server-card+json"

/** How long a catalog or a card may take, in milliseconds, unless `--timeout` is shorter. */
const maxFetchTime = 10_000

/** The size of a catalog or a card, in characters. */
const maxDocumentChars = 1024 * 1024

/** How many cards of one catalog are read. */
const maxCards = 32

/** How many redirects a catalog or a card may be behind. */
const maxRedirects = 3

/** A server of a domain, as its card describes it. */
export interface Found {
  /** The card as it was read. */
  readonly card: Readonly<Record<string, unknown>>
  readonly name: string
  readonly version: string
  /** Where the card is; undefined for one that the catalog contains. */
  readonly from: string | undefined
  /** The endpoint of Streamable HTTP; undefined if the card has none that can be used as it is. */
  readonly endpoint: URL | undefined
}

/** The servers of a domain, and the entries that could not be read. */
export interface Discovered {
  readonly catalog: string
  readonly found: ReadonlyArray<Found>
  readonly problems: ReadonlyArray<string>
}

/**
 * Whether requests may be sent to an address for a domain: by https, or to this computer if the domain is this computer
 * itself. A catalog of another one must not make this program call local services.
 */
export const isReadable = (url: URL, domain: URL): boolean =>
  mayBeLocal(url.hostname)
    ? isLoopback(domain.hostname) && /^https?:$/.test(url.protocol)
    : url.protocol === "https:"

const refused = "an address must be https, and of this computer only for its own catalog"

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

/** The domain that is inspected, and the time that one document may take, in milliseconds. */
interface Inspected {
  readonly domain: URL
  readonly timeout: number | undefined
}

/** Reads a document. Fails with the reason in words. */
const readJson = (from: URL, accept: string, { domain, timeout }: Inspected): Effect.Effect<unknown, string> => {
  const duration = Math.min(maxFetchTime, timeout ?? maxFetchTime)
  return Effect.tryPromise({
    try: async (signal) => {
      if (!isReadable(from, domain)) throw new Error(refused)
      const headers = { accept: `${accept}, application/json;q=0.9` }
      const init = { headers, redirect: "manual", signal } as const
      let url = from
      for (let redirects = 0; redirects <= maxRedirects; redirects++) {
        const response = await fetch(url, init)
        const location = response.headers.get("location")
        if (response.ok) return await readJsonBody(response, maxDocumentChars)
        await response.body?.cancel()
        if (response.status < 300 || response.status >= 400 || location === null) {
          throw new Error(`HTTP ${response.status}`)
        }
        url = new URL(location, url)
        if (!isReadable(url, domain)) throw new Error(`it redirects to ${url.href}: ${refused}`)
      }
      throw new Error(`it has more than ${maxRedirects} redirects`)
    },
    catch: (error) => quoteLine(reasonOf(error))
  }).pipe(Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(`it took more than ${duration} ms`) }))
}

/** The endpoint of a card. Variables of its URL need values, so such a URL is left to the person. */
const endpointOf = ({ remotes }: Readonly<Record<string, unknown>>, domain: URL): URL | undefined => {
  for (const remote of Array.isArray(remotes) ? remotes : []) {
    if (!isObject(remote) || remote["type"] !== "streamable-http") continue
    const url = URL.parse(textOf(remote["url"]))
    if (url !== null && isReadable(url, domain) && !/[{}]/.test(textOf(remote["url"]))) return url
  }
  return undefined
}

/** A card, or why it is not one. */
const foundOf = (card: unknown, from: string | undefined, domain: URL): Effect.Effect<Found, string> => {
  if (!isObject(card) || textOf(card["name"]) === "") return Effect.fail("it is not a server card: it has no name")
  const { name, version } = card
  return Effect.succeed({
    card,
    from,
    name: textOf(name),
    version: textOf(version),
    endpoint: endpointOf(card, domain)
  })
}

/** The server of an entry of a catalog. */
const readEntry = (
  entry: Readonly<Record<string, unknown>>,
  catalog: URL,
  inspected: Inspected
): Effect.Effect<Found, string> => {
  const { data, url } = entry
  if (url === undefined) return foundOf(data, undefined, inspected.domain)
  const address = URL.parse(textOf(url), catalog.href)
  if (address === null) return Effect.fail("its url is not valid")
  return Effect.flatMap(
    readJson(address, cardType, inspected),
    (card) => foundOf(card, address.href, inspected.domain)
  )
}

/**
 * Reads the catalog of a domain and its cards, all at the same time. Fails if there is no catalog, or no server in it. A
 * card that cannot be read does not hide the others.
 */
export const discover = (origin: URL, timeout: number | undefined): Effect.Effect<Discovered, CommandFailed> =>
  Effect.gen(function*() {
    const inspected: Inspected = { domain: origin, timeout }
    const catalog = new URL("/.well-known/ai-catalog.json", origin)
    const read = yield* Effect.mapError(readJson(catalog, catalogType, inspected), (reason) =>
      failed(
        3,
        `${origin.host} has no catalog of its servers that can be read (${catalog.href}: ${reason}). Give the URL of the ` +
          `server, such as ${new URL("/mcp", origin).href}`
      ))
    const entries = isObject(read) && Array.isArray(read["entries"]) ? read["entries"] : undefined
    if (entries === undefined) return yield* failed(4, `${catalog.href} is not a catalog: it has no entries`)
    // Drafts have `mediaType`.
    const ofServers = entries.filter(isObject).filter(({ mediaType, type = mediaType }) => type === cardType)
    const results = yield* Effect.forEach(
      ofServers.slice(0, maxCards),
      (entry) => Effect.result(readEntry(entry, catalog, inspected)),
      { concurrency: 8 }
    )
    const found: Array<Found> = []
    const problems: Array<string> = []
    for (const [at, result] of results.entries()) {
      if (result._tag === "Success") found.push(result.success)
      else {
        const { identifier, url = identifier } = ofServers[at]!
        problems.push(`The card ${quoteName(textOf(url) || String(at + 1))} is left out: ${result.failure}`)
      }
    }
    if (ofServers.length > maxCards) problems.push(`Only the first ${maxCards} of ${ofServers.length} cards are read`)
    if (found.length > 0) return { catalog: catalog.href, found, problems }
    const reasons = problems.length === 0 ? "it lists none" : problems.join("; ")
    return yield* failed(4, `${catalog.href} has no MCP server that can be used: ${reasons}`)
  })

/** A card as text, above what the server itself answers. */
export const cardText = ({ card, endpoint, from, name, version }: Found): string => {
  const rows = [
    ["Title", cell(textOf(card["title"]))],
    ["Description", cell(textOf(card["description"]))],
    ["Card", cell(from ?? "in the catalog")],
    ["Endpoint", cell(endpoint?.href ?? "none that can be used without further values")]
  ] as const
  return [
    `${quoteName(`${name} ${version}`)} (server card)`,
    ...rows.flatMap(([name, text]) => text === "" ? [] : [`  ${name.padEnd(13)} ${text}`])
  ].join("\n")
}

/** The servers of a domain as a table. */
export const cardTable = (found: ReadonlyArray<Found>, colors?: Colors): string =>
  denseTable(
    ["SERVER", "VERSION", "ENDPOINT", "DESCRIPTION"],
    found.map(({ card, endpoint, name, version }) => [
      cell(name),
      cell(version),
      endpoint === undefined ? "" : cell(endpoint.href),
      cell(textOf(card["description"]))
    ]),
    colors
  )

/** How a card contradicts the server: its values were unverified when they were read. */
export const differencesOf = (
  { card, version }: Found,
  live: { readonly version: string | undefined; readonly supported: ReadonlyArray<string> }
): ReadonlyArray<string> => {
  const remotes = Array.isArray(card["remotes"]) ? card["remotes"] : []
  const claimed = remotes.filter(isObject).flatMap(({ supportedProtocolVersions: all }) =>
    Array.isArray(all) ? all : []
  )
  const missing = [...new Set(claimed.map(textOf))].filter((each) => each !== "" && !live.supported.includes(each))
  return [
    ...live.version === undefined || live.version === version
      ? []
      : [`The card has the version ${quoteName(version)}, and the server ${quoteName(live.version)}`],
    ...live.supported.length === 0 || missing.length === 0
      ? []
      : [`The card lists revisions that the server does not support: ${quoteName(missing.join(", "))}`]
  ]
}
