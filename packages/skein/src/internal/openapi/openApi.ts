/**
 * The operations of an HTTP API as tools, resources and resource templates.
 */
import type * as Core from "@skein/openapi/OpenApi"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import { defineLazily, type Definition } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import type { McpRequest } from "../server/request.ts"

/** A document of OpenAPI 3.0, 3.1 or 3.2: its URL (`https:` or `file:`), its text in JSON or YAML, or the parsed document. */
export type OpenApiDocument = URL | string | object

/** An operation of a document. */
export interface Operation {
  /** The `operationId`, if the operation has one. */
  readonly id: string | undefined
  /** The method in upper case: `GET`. Since OpenAPI 3.2 it may be any other, in the spelling of the document. */
  readonly method: string
  /** The path as in the document: `/pets/{petId}`. */
  readonly path: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string | undefined
  readonly description: string | undefined
  readonly deprecated: boolean
  /** The base URL of its requests. */
  readonly baseUrl: string
  /** The alternatives of `security`, each as the names of the schemes that a request needs together. */
  readonly security: ReadonlyArray<ReadonlyArray<string>>
}

/** A choice of operations: those with one of the tags or ids, or those for which a function returns `true`. */
export type OperationSelection =
  | { readonly tags?: ReadonlyArray<string> | undefined; readonly ids?: ReadonlyArray<string> | undefined }
  | ((operation: Operation) => boolean)

/** The parts of a request that the author adds. They replace arguments of the same name, also those that a model gave. */
export interface ApiCredentials {
  /** Headers, such as `authorization`. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Query parameters. */
  readonly query?: { readonly [name: string]: string } | undefined
}

/** The options of `openApi` and `listOpenApi`. */
export interface OpenApiOptions {
  /** The operations that become definitions. All by default. */
  readonly include?: OperationSelection | undefined
  /** The operations that do not, also where `include` names them. None by default. */
  readonly exclude?: OperationSelection | undefined
  /** Names an operation. Where it returns `undefined`: the `operationId`, or else the method and the path. */
  readonly name?: ((operation: Operation) => string | undefined) | undefined
  /**
   * The kind of definition for an operation. A tool by default. `"resource"` needs a GET without required arguments, and
   * `"template"` a GET whose required arguments are in the path or in the query.
   */
  readonly routeMap?: ((operation: Operation) => "tool" | "resource" | "template" | "exclude") | undefined
  /** The beginning of the URIs of resources and templates: `openapi://<title of the document>` by default. */
  readonly uriPrefix?: string | undefined
  /** The base URL of all requests: by default the first of the document's `servers`. */
  readonly baseUrl?: string | URL | undefined
  /** The URL of the document, for relative references and servers, if it is given as text or parsed. */
  readonly documentUrl?: string | URL | undefined
  /** Headers of every request. They replace arguments of the same name. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /**
   * Makes the credentials of a call. It runs for each call, and receives the request with its principal. The model receives the
   * message of a `VisibleError` that it throws.
   *
   * @example
   * credentials: async (_, { caller }) => ({ headers: { authorization: `Bearer ${await tokenOf(caller.principal)}` } })
   */
  readonly credentials?: ((operation: Operation, request: McpRequest) => Awaitable<ApiCredentials>) | undefined
  /** The names of parameters that are not arguments, in any case: those that `headers` and `credentials` fill in. */
  readonly hiddenParameters?: ReadonlyArray<string> | undefined
  /** The function that makes the requests, and loads the documents: `globalThis.fetch` by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** The time for a request and its answer: 30 seconds by default. A model receives a message about a timeout. */
  readonly timeout?: Duration | undefined
  /** The most bytes of an answer: 262,144 by default. A larger answer is a failure, with its beginning. */
  readonly maxResultBytes?: number | undefined
  /** The most operations: 500 by default. A server with more does not start. */
  readonly maxOperations?: number | undefined
  /** The most characters of an input schema, and of an output schema: 16,384 by default. A larger one loses parts. */
  readonly maxSchemaChars?: number | undefined
  /** Whether tools list the schemas of their results: `false` by default. */
  readonly outputSchemas?: boolean | undefined
  /**
   * The handling of an operation that cannot be called: it is left out with a warning in the log (`"warn"`, the default), or the
   * server does not start (`"fail"`).
   */
  readonly onInvalidOperation?: "warn" | "fail" | undefined
  /** Which other documents references may lead to: by default only files in the folder of a document that is a file. */
  readonly allowReference?: ((url: URL) => boolean) | undefined
  /** Whether documents may be loaded over `http:`. Not by default. */
  readonly allowHttp?: boolean | undefined
}

/** A definition that `openApi` makes. */
export interface ListedOperation {
  readonly as: "tool" | "resource" | "template"
  /** The name of the tool, the resource or the template. */
  readonly name: string
  readonly operation: Operation
}

/** An operation that is left out, or a part of the document that has no effect. */
export interface LeftOut {
  /** Whether it is an operation, or a part of the document without which operations are definitions. */
  readonly kind: "operation" | "part"
  /** The JSON Pointer of the operation or of the part. */
  readonly place: string
  readonly message: string
}

/** The operations of a document. */
export interface OpenApiListing {
  readonly definitions: ReadonlyArray<ListedOperation>
  /** The operations that cannot be called, then the parts of the others that have no effect. */
  readonly leftOut: ReadonlyArray<LeftOut>
}

const load = () => import("@skein/openapi/OpenApi")

/** The options of `@skein/openapi`, and the layer with the function that makes the requests. */
const coreOptions = ({ fetch, ...options }: OpenApiOptions) => ({
  options: options as Core.Options,
  fetching: fetch === undefined ? Layer.empty : Layer.succeed(FetchHttpClient.Fetch, fetch)
})

/**
 * Makes the operations of an HTTP API definitions of a server, from its OpenAPI document. Parameters and body of an operation
 * become one flat object of arguments; a call makes the HTTP request, and its answer is the result. The document is loaded
 * when the server starts, which fails with an `OpenApiError`, or for a name that another definition has.
 *
 * @example
 * const pets = openApi(new URL("https://pets.example/openapi.json"), {
 *   include: { tags: ["pets"] },
 *   headers: { authorization: `Bearer ${token}` }
 * })
 * new AsyncServer({ name: "pets", version: "1.0.0" }).use(pets).runStdio()
 */
export const openApi = (document: OpenApiDocument, options: OpenApiOptions = {}): Definition => {
  const { fetching, options: core } = coreOptions(options)
  return defineLazily(load, ({ layer }) => Layer.provide(layer(document, core), fetching))
}

/**
 * Lists the definitions that `openApi` would make, the operations that cannot be called, and the parts without effect. Rejects
 * with an `OpenApiError`.
 *
 * @example
 * const { definitions, leftOut } = await listOpenApi(new URL("file:///srv/pets.yaml"))
 */
export const listOpenApi = async (document: OpenApiDocument, options: OpenApiOptions = {}): Promise<OpenApiListing> => {
  const { list } = await load()
  const { fetching, options: core } = coreOptions(options)
  return Effect.runPromise(Effect.provide(list(document, core), fetching))
}
