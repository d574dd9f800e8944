/**
 * Loads a document and the documents that it refers to, within bounds.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { clip, quote } from "@skein/protocol/Text"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type { HttpClient } from "effect/http/HttpClient"
import { CORE_SCHEMA, load as loadYaml, mergeTag } from "js-yaml"
import {
  LimitExceeded,
  LoadFailed,
  OpenApiError,
  ParseFailed,
  ReferenceNotAllowed,
  UnsupportedVersion
} from "../../OpenApiError.ts"
import * as boundedBody from "../answer/boundedBody.ts"
import { isBeside, readFile } from "./nodeFile.ts"
import type { Document, Version } from "./pointer.ts"
import { isUnknown, localize } from "./references.ts"

/** The most other documents that references lead to. Some authors write each schema in a file of its own. */
const maxDocuments = 1_000

/** The most bytes of the document, and of all other documents together. */
const maxDocumentBytes = 32 * 1024 * 1024

/** The time to load all documents. */
const loadTimeout = Duration.seconds(30)

/** The documents that may be loaded. */
export interface LoadOptions {
  readonly documentUrl: URL | undefined
  readonly allowReference: ((url: URL) => boolean) | undefined
  readonly allowHttp: boolean
}

const loadFailed = (url: URL, why: string) =>
  new OpenApiError({
    reason: new LoadFailed({ message: `Cannot load the document ${url.href}: ${why}`, url: url.href })
  })

const exceeded = (limit: LimitExceeded["limit"], message: string) =>
  new OpenApiError({ reason: new LimitExceeded({ message, limit }) })

/** The bytes and values that are left for the document, or for all other documents. */
interface Budget {
  bytes: number
  values: number
  /** The words of messages after the name of a document. */
  readonly together: string
}

const budget = (together: string): Budget => ({ bytes: maxDocumentBytes, values: maxValues, together })

const tooLarge = (url: URL, { together }: Budget) =>
  exceeded("documentBytes", `The document ${url.href} has more than ${maxDocumentBytes} bytes${together}`)

/** Decodes the bytes of a document. `undefined` stands for too many. */
const decode = (bytes: Uint8Array | undefined, url: URL, left: Budget): Effect.Effect<string, OpenApiError> => {
  left.bytes -= bytes?.length ?? 0
  return bytes === undefined || left.bytes < 0
    ? Effect.fail(tooLarge(url, left))
    : Effect.succeed(new TextDecoder().decode(bytes))
}

/** Reads the text of a document: of a file only in the folder of `beside`, if it is given. */
const fetchText = Effect.fnUntraced(function*(
  client: HttpClient,
  url: URL,
  { allowHttp }: LoadOptions,
  left: Budget,
  beside?: URL
) {
  if (url.protocol === "file:") return yield* decode(yield* readFile(url, left.bytes, beside), url, left)
  if (url.protocol !== "https:" && !(allowHttp && url.protocol === "http:")) {
    return yield* loadFailed(url, "only https: and file: URLs are loaded; http: needs the option allowHttp")
  }
  const failed = () => loadFailed(url, "the connection failed")
  const response = yield* client.get(url.href, { headers: { accept: "application/json, */*" } }).pipe(
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
    Effect.mapError(failed)
  )
  if (response.status >= 300 && response.status < 400) {
    return yield* loadFailed(url, "it redirects, which is not followed. Use the URL that it leads to")
  }
  if (response.status !== 200) return yield* loadFailed(url, `the status of the answer is ${response.status}`)
  const { bytes, isCut } = yield* Effect.mapError(boundedBody.read(response, left.bytes), failed)
  return yield* decode(isCut ? undefined : bytes, url, left)
})

// The bounds of parsing: a few lines of YAML with nested aliases stand for billions of values.
const maxAliases = 10_000
const maxDepth = 500

/** The most values of the document, and of all other documents together, where the target of an alias counts each time. */
const maxValues = 10_000_000

// YAML is read with the types of JSON, so that a date stays a text.
const schema = /* @__PURE__ */ CORE_SCHEMA.withTags(mergeTag)

const readText = (text: string): unknown => {
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text)
    } catch {
      // YAML in the flow style begins in the same way.
    }
  }
  return loadYaml(text, { schema, json: true, maxAliases, maxDepth })
}

/** Whether a tree has at most `maxDepth` levels, and at most as many values as are left. */
const isBounded = (root: unknown, left: Budget): boolean => {
  const fits = (value: unknown, depth: number): boolean =>
    --left.values >= 0 && depth <= maxDepth && childrenOf(value).every((child) => fits(child, depth + 1))
  return fits(root, 0)
}

const childrenOf = (value: unknown): ReadonlyArray<unknown> =>
  typeof value === "object" && value !== null ? Object.values(value) : []

const firstLine = (error: unknown): string =>
  Nesting.exceedsStack(error)
    ? `it ${Nesting.problem}`
    : clip((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "", 300)

/** Parses a document. */
const parse = Effect.fnUntraced(function*(text: string, url: URL | undefined, left: Budget) {
  const name = url === undefined ? "the document" : `the document ${url.href}`
  const failed = (why: string) =>
    new OpenApiError({ reason: new ParseFailed({ message: `Cannot parse ${name}: ${why}`, url: url?.href }) })
  const parsed = yield* Effect.try({
    try: () => readText(text.replace(/^\ufeff/, "")),
    catch: (error) => failed(firstLine(error))
  })
  if (!isObject(parsed)) return yield* failed("it is not an object")
  if (!isBounded(parsed, left)) {
    return yield* failed(`it has more than ${maxDepth} levels, or more than ${maxValues} values${left.together}`)
  }
  return parsed
})

const notAllowed = (reference: string, why: string): OpenApiError =>
  new OpenApiError({
    reason: new ReferenceNotAllowed({ message: `The reference ${quote(reference, 300)} ${why}`, reference })
  })

const loadTime = () => exceeded("loadTime", `The document was not loaded within ${Duration.format(loadTimeout)}`)

/** Makes the function that reads the documents of references, until a time in milliseconds. */
const makeReader = (base: URL | undefined, client: HttpClient, options: LoadOptions, until: number) => {
  const { allowReference } = options
  const left = budget(" together with the other documents of references")
  let count = 0
  return Effect.fnUntraced(function*(url: URL) {
    if (isUnknown(url)) {
      return yield* notAllowed(url.pathname.slice(1), "is relative, and the document has no URL: give documentUrl")
    }
    const isAllowed = allowReference?.(url) === true
    if (!isAllowed && !isBeside(url, base)) {
      return yield* notAllowed(url.href, "leads to another document. Allow it with the option allowReference")
    }
    if (++count > maxDocuments) {
      return yield* exceeded("documents", `The references lead to more than ${maxDocuments} other documents`)
    }
    const duration = until - (yield* Clock.currentTimeMillis)
    return yield* fetchText(client, url, options, left, isAllowed ? undefined : base).pipe(
      Effect.flatMap((text) => parse(text, url, left)),
      Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(loadTime()) })
    )
  })
}

/** The version of a document, which is of OpenAPI 3. A version that is newer than 3.2 is read as 3.2. */
const versionOf = (root: JsonObject): Effect.Effect<Version, OpenApiError> => {
  const version = root["openapi"]
  const [, minor] = typeof version === "string" ? /^3\.(\d+)/.exec(version) ?? [] : []
  if (minor !== undefined) return Effect.succeed(minor === "0" ? "3.0" : minor === "1" ? "3.1" : "3.2")
  const message = root["swagger"] === undefined
    ? `The document is not of OpenAPI 3: its member "openapi" is ${clip(JSON.stringify(version) ?? "missing", 60)}`
    : "The document is of Swagger 2.0. Convert it to OpenAPI 3 first, with swagger2openapi for example"
  return Effect.fail(new OpenApiError({ reason: new UnsupportedVersion({ message }) }))
}

/** Loads a document from its URL, its text, or the parsed document. */
export const load = (
  source: URL | string | object,
  client: HttpClient,
  options: LoadOptions
): Effect.Effect<Document, OpenApiError> =>
  Effect.gen(function*() {
    const url = source instanceof URL ? source : options.documentUrl
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(loadTimeout)
    const left = budget("")
    const text = source instanceof URL
      ? yield* Effect.timeoutOrElse(fetchText(client, source, options, left), {
        duration: loadTimeout,
        orElse: () => Effect.fail(loadTime())
      })
      : source
    // The parsed document of the caller is not changed. The copy also has no members that JSON does not have.
    const root = yield* parse(typeof text === "string" ? text : JSON.stringify(text), url, left)
    const version = yield* versionOf(root)
    yield* localize(root, url, version !== "3.0", makeReader(url, client, options, until))
    return { root, url, version }
  })
