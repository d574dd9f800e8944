/**
 * OpenAPI: the operations of an HTTP API as tools, resources and resource templates.
 *
 * `OpenApi.layer` reads a document of OpenAPI 3.0, 3.1 or 3.2, in JSON or YAML, and registers its operations. Parameters and
 * body of an operation become one flat object of arguments. A call makes the HTTP request, and its answer becomes the
 * result. `OpenApi.list` returns what `layer` would register.
 *
 * - **Names.** A tool is named by its `operationId`, else by its method and path, in `A-Z a-z 0-9 _ . -` and at most 64
 *   characters. A name that is taken gets a number.
 * - **Arguments.** An argument has the name of its parameter. A name that is taken gets its place as a suffix: `id`,
 *   `id_query`, `id_header`, `id_cookie`, `id_body`. The members of a JSON object or a form are arguments of their own; any
 *   other body is the argument `body`. `readOnly` members are not arguments. Bytes are base64.
 * - **Results.** A JSON object is structured content, if the document declares an object. Other texts are text, images
 *   and audio are blocks of their kind, and other bytes are an embedded resource.
 * - **Failures.** A status other than 2xx, a timeout and a failed connection are results with `isError` and a message for
 *   the model: the status, advice, `Retry-After`, and the beginning of the answer, without the credentials of the request.
 * - **Safety.** A value stays in its path segment, query parameter or header. Redirects to other origins are not followed.
 *
 * Requests are sent by the `HttpClient` of the environment, or by `fetch` without one.
 *
 * @example
 * const pets = OpenApi.layer(new URL("https://pets.example/openapi.json"), {
 *   include: { tags: ["pets"] },
 *   headers: { authorization: Redacted.make(`Bearer ${token}`) }
 * })
 * const server = McpServer.layer({ name: "pets", version: "1.0.0" }, pets)
 */
import type { Awaitable } from "@skein/runtime/Awaitable"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Logging from "@skein/server/Logging"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { defaultMaxResultBytes } from "./internal/answer/answer.ts"
import type { Credentials, Value } from "./internal/call/send.ts"
import { load } from "./internal/document/load.ts"
import type { Operation } from "./internal/document/operations.ts"
import { register } from "./internal/plan/register.ts"
import { type LeftOut, type Route, select, type Selection } from "./internal/plan/select.ts"
import type { OpenApiError } from "./OpenApiError.ts"

export type { Credentials, Value } from "./internal/call/send.ts"
export type { Operation } from "./internal/document/operations.ts"
export type { LeftOut, Route, Selection } from "./internal/plan/select.ts"

/** A document: its URL (`https:` or `file:`), its text in JSON or YAML, or the parsed document. */
export type Document = URL | string | object

/** The options of `layer` and `list`. `E` and `R` are the failures and the services of `credentials`. */
export interface Options<E = never, R = never> {
  /** The operations that are registered. All by default. */
  readonly include?: Selection | undefined
  /** The operations that are not registered, also where `include` names them. None by default. */
  readonly exclude?: Selection | undefined
  /** Names an operation. Where it returns `undefined`, the name is the default one. */
  readonly name?: ((operation: Operation) => string | undefined) | undefined
  /**
   * The kind of definition for an operation. A tool by default. `"resource"` needs a GET without required arguments,
   * and
   * `"template"` a GET whose required arguments are in the path or in the query.
   */
  readonly routeMap?: ((operation: Operation) => Route) | undefined
  /**
   * The beginning of the URIs of resources and templates, to which the path of the operation is added.
   * `openapi://<title of the document>` by default.
   */
  readonly uriPrefix?: string | undefined
  /**
   * The base URL of all requests. By default the first of the document's `servers`, with the defaults of its variables;
   * a relative one is resolved against the URL of the document.
   */
  readonly baseUrl?: string | URL | undefined
  /** The URL of the document, for relative references and servers, if the document is given as text or parsed. */
  readonly documentUrl?: string | URL | undefined
  /** Headers of every request. They replace arguments of the same name. */
  readonly headers?: Readonly<Record<string, Value>> | undefined
  /**
   * Makes the credentials of a call: a value, a promise or an effect. It runs for each call, and receives the request
   * with its principal, which an effect also has as the service `McpRequest`. The model receives the `message` of its
   * failure, and of a rejection with an error that clients may see (`HandlerContext`).
   *
   * @example
   * credentials: async (_, { caller }) => ({ headers: { authorization: await tokenOf(caller.principal) } })
   */
  readonly credentials?:
    | ((operation: Operation, request: RequestContext) => Awaitable<Credentials, E, R>)
    | undefined
  /** The names of parameters that are not arguments, in any case: those that `headers` and `credentials` fill in. */
  readonly hiddenParameters?: ReadonlyArray<string> | undefined
  /**
   * The time for a request and its answer; 30 seconds by default. A model receives a message about a timeout. Raise it
   * for slow operations.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * The most bytes of an answer; 262,144 by default. A larger answer is a failure, with its beginning and with the
   * arguments that make answers smaller, as far as their names show them. Lower it
   * for models with a small context.
   */
  readonly maxResultBytes?: number | undefined
  /**
   * The most operations; 500 by default. A document with more fails the layer: choose with `include` and `exclude`, or
   * raise it where models search for tools (`HiddenTools`).
   */
  readonly maxOperations?: number | undefined
  /**
   * The most characters of an input schema, and of an output schema, as JSON text; 16,384 by default. A larger schema
   * loses the annotations of nested parts, then the parts that are farthest from its root. Lower it for models with a small
   * context.
   */
  readonly maxSchemaChars?: number | undefined
  /**
   * Whether tools list the schemas of their results. Not by default, since they are several times as long as those of
   * the arguments, and few clients use them. Results have structured content in both cases.
   */
  readonly outputSchemas?: boolean | undefined
  /**
   * The handling of an operation that cannot be called, because of a broken reference for example: it is left out with
   * a warning in the log (`"warn"`, the default), or it fails the layer (`"fail"`).
   */
  readonly onInvalidOperation?: "warn" | "fail" | undefined
  /**
   * Which other documents references may lead to. None by default, except for files in the folder of a document that is
   * a file, whose real path is there too. An operation that needs another document is left out: see
   * `onInvalidOperation`.
   */
  readonly allowReference?: ((url: URL) => boolean) | undefined
  /** Whether documents may be loaded over `http:`. Not by default. */
  readonly allowHttp?: boolean | undefined
}

/** A definition that `layer` registers. */
export interface Listed {
  readonly as: "tool" | "resource" | "template"
  /** The name of the tool, the resource or the template. */
  readonly name: string
  readonly operation: Operation
}

/** The operations of a document: those that `layer` registers, and those that cannot be called. */
export interface Listing {
  readonly definitions: ReadonlyArray<Listed>
  /** The operations that cannot be called, then the parts of the others that have no effect. */
  readonly leftOut: ReadonlyArray<LeftOut>
}

const sourceOf = (document: Document): Document =>
  typeof document === "string" && /^(?:https?|file):\/\/\S+$/.test(document) ? new URL(document) : document

const currentClient: Effect.Effect<HttpClient.HttpClient> = /* @__PURE__ */ Effect.flatMap(
  Effect.serviceOption(HttpClient.HttpClient),
  Option.match({
    onSome: Effect.succeed,
    onNone: () => Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
  })
)

const read = <E, R>(document: Document, options: Options<E, R>) =>
  Effect.gen(function*() {
    const client = yield* currentClient
    const { baseUrl, documentUrl, maxOperations = 500, maxSchemaChars = 16_384, outputSchemas = false } = options
    const loaded = yield* load(sourceOf(document), client, {
      documentUrl: documentUrl === undefined ? undefined : new URL(documentUrl),
      allowReference: options.allowReference,
      allowHttp: options.allowHttp ?? false
    })
    const selected = yield* Effect.fromResult(select(loaded, {
      ...options,
      baseUrl: baseUrl === undefined ? undefined : String(baseUrl),
      maxOperations,
      hiddenParameters: new Set(options.hiddenParameters?.map((name) => name.toLowerCase())),
      outputSchemas,
      maxSchemaChars,
      isStrict: options.onInvalidOperation === "fail"
    }))
    return { client, ...selected }
  })

/** The most operations that are named in the log one by one. */
const maxWarnings = 20

const warn = (leftOut: ReadonlyArray<LeftOut>): Effect.Effect<void> =>
  Logging.withheld(Effect.gen(function*() {
    const operations = leftOut.filter(({ kind }) => kind === "operation")
    for (const { message, place } of operations.slice(0, maxWarnings)) {
      yield* Effect.logWarning(`The operation ${place} of the OpenAPI document is left out: ${message}`)
    }
    const more = operations.length - maxWarnings
    if (more > 0) yield* Effect.logWarning(`${more} further operations of the OpenAPI document are left out`)
    const parts = leftOut.filter(({ kind }) => kind === "part")
    const [first] = parts
    if (first === undefined) return
    yield* Effect.logInfo(
      `${parts.length} ${
        parts.length === 1 ? "part of the OpenAPI document has" : "parts of the OpenAPI document have"
      } no ` +
        `effect, such as ${first.place}: ${first.message}. OpenApi.list returns all`
    )
  }))

/**
 * Lists what `layer` would register, the operations that cannot be called, and the parts without effect. Fails as `layer`
 * does.
 *
 * @example
 * const { definitions, leftOut } = yield* OpenApi.list(new URL("file:///srv/pets.yaml"))
 */
export const list = <E = never, R = never>(
  document: Document,
  options: Options<E, R> = {}
): Effect.Effect<Listing, OpenApiError> =>
  Effect.map(read(document, options), ({ definitions, leftOut }) => ({
    definitions: definitions.map(({ as, name, plan }) => ({ as, name, operation: plan.operation })),
    leftOut
  }))

/**
 * Registers the operations of a document. The document is loaded once, when the layer is built.
 *
 * Fails with `OpenApiError`, whose `reason` names the fault of the document and its place, and with `DefinitionError`
 * if another definition of the server has the name of an operation.
 *
 * @example
 * const live = OpenApi.layer(new URL("file:///srv/pets.yaml"), {
 *   routeMap: ({ method, path }) => method === "GET" && !path.includes("{") ? "resource" : "tool",
 *   credentials: () => Effect.map(tokenOfCaller, (token) => ({ headers: { authorization: token } }))
 * })
 */
export const layer = <E extends HandlerError = never, R = never>(
  document: Document,
  options: Options<E, R> = {}
): Layer.Layer<never, OpenApiError | DefinitionError, Catalog | HandlerServices<R>> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const { client, definitions, leftOut } = yield* read(document, options)
    const { credentials, maxResultBytes = defaultMaxResultBytes, timeout = "30 seconds" } = options
    yield* warn(leftOut)
    const sending = {
      client,
      headers: options.headers ?? {},
      credentials: credentials &&
        ((operation: Operation): Effect.Effect<Credentials, HandlerError, R | McpRequest> =>
          Effect.flatMap(McpRequest, (request) => AsyncHandler.settle(() => credentials(operation, request)))),
      timeout,
      maxResultBytes
    }
    for (const definition of definitions) yield* register(definition, sending)
  })) as Layer.Layer<never, OpenApiError | DefinitionError, Catalog | HandlerServices<R>>
