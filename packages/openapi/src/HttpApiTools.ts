/**
 * The endpoints of an `HttpApi` of `effect/http-api` as tools, in the application that serves them.
 *
 * Every endpoint becomes a tool. A call runs the endpoint in this process, through the router of the application: with
 * the router's middleware, the security of the endpoint and its handler, and without a socket.
 *
 * - **Names.** `find` of the group `users` is the tool `users_find`; an endpoint of a top-level group has its own name. The
 *   annotation `OpenApi.Identifier` takes precedence, and `name` over both.
 * - **Arguments.** Path parameters, query, headers and payload are one object. The name of an argument that is taken gets
 *   its place as a suffix: `id`, `id_query`, `id_header`, `id_body`. The members of a struct are arguments of their own; any
 *   other payload is the argument `payload`, and bytes are base64. Of several payloads a tool sends JSON, else a form, else
 *   text, else bytes.
 * - **Types.** A number or a boolean of a path, a query or a header is a number or a boolean for the model. Types without a
 *   JSON form, such as dates, are the text that HTTP clients send.
 * - **Results.** A JSON body is structured content, and its schema is the output schema if every success is JSON. Other
 *   bodies are text, images, audio, or an embedded resource.
 * - **Failures.** A status other than 2xx is a result with `isError`: the status, advice, and the encoded error of the
 *   endpoint. A defect of a handler is a result with `isError` and a reference, and logged.
 * - **Hints.** `GET` is read-only, `PUT` and `DELETE` are destructive and idempotent, `PATCH` is destructive. The annotation
 *   {@link Hints} replaces them.
 * - **Left out.** Endpoints that stream, upgrade, or accept only multipart or streamed payloads cannot be tools. They are
 *   left out with a warning, or fail the layer: `onUnsupported`. Endpoints with `OpenApi.Exclude` are left out.
 *
 * @example
 * const Mcp = HttpRoutes.layer().pipe(
 *   Layer.provide(McpServer.layer({ name: "shop", version: "1.0.0" }, HttpApiTools.layer(Api)))
 * )
 * HttpRoutes.serve(Layer.merge(ApiRoutes, Mcp)).pipe(Layer.provide(NodeHttpServer.layer(createServer, { port: 3000 })))
 */
import * as McpError from "@skein/protocol/McpError"
import { clip } from "@skein/protocol/Text"
import type { ToolAnnotations } from "@skein/protocol/Tool"
import type { Awaitable } from "@skein/runtime/Awaitable"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as OpenApi from "effect/http-api/OpenApi"
import type * as HttpClient from "effect/http/HttpClient"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import { DefinitionError, InvalidSchema } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import { defaultMaxResultBytes, hintsOfMethods } from "./internal/answer/answer.ts"
import { type Arguments, argumentsOf, Unsupported } from "./internal/httpApi/endpointArguments.ts"
import { outputSchemaOf, tooLarge, toResult, withoutRoute } from "./internal/httpApi/endpointResult.ts"
import { type AnswerTooLarge, CallHeaders, makeInProcessClient, NoRoute } from "./internal/httpApi/inProcess.ts"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Logging from "@skein/server/Logging"
import * as Tool from "@skein/server/Tool"

/** An endpoint, as the options see it. */
export interface Endpoint {
  readonly group: string
  readonly endpoint: string
  readonly method: string
  /** The path with its parameters: `/users/:id`. */
  readonly path: string
  /** The annotations of the API, the group and the endpoint, merged. */
  readonly annotations: Context.Context<never>
  /** The names of the security schemes, of which a caller needs credentials. */
  readonly security: ReadonlyArray<string>
}

/** The names of the endpoints of an API, with their groups: `users.find`. */
export type EndpointName<Groups extends HttpApiGroup.Constraint> = Groups extends HttpApiGroup.Constraint
  ? `${HttpApiGroup.Identifier<Groups>}.${HttpApiGroup.Endpoints<Groups>["identifier"]}`
  : never

/** A choice of endpoints: all of some groups, some by name, or those for which a function returns `true`. */
export type Selection<Groups extends HttpApiGroup.Constraint> =
  | {
    readonly groups?: ReadonlyArray<HttpApiGroup.Identifier<Groups>> | undefined
    readonly endpoints?: ReadonlyArray<EndpointName<Groups>> | undefined
  }
  | ((endpoint: Endpoint) => boolean)

/** The options of `layer`. `E` and `R` are the failures and the services of `credentials`. */
export interface Options<Groups extends HttpApiGroup.Constraint, E = never, R = never> {
  /** The endpoints that become tools. All by default. */
  readonly include?: Selection<Groups> | undefined
  /** The endpoints that do not become tools, also where `include` names them. None by default. */
  readonly exclude?: Selection<Groups> | undefined
  /** Names the tool of an endpoint. Where it returns `undefined`, the name is the default one. */
  readonly name?: ((endpoint: Endpoint) => string | undefined) | undefined
  /**
   * Describes the tool of an endpoint to models. Where it returns `undefined`, the description is that of the
   * annotations
   * `OpenApi.Description` or `OpenApi.Summary`, or else the method and the path, which say little to a model.
   */
  readonly description?: ((endpoint: Endpoint) => string | undefined) | undefined
  /**
   * The headers of the client's request that the endpoint receives, such as `authorization` or `accept-language`. None
   * by default. The MCP endpoint withholds the credentials of a request with a principal (`readableCredentials`), and a
   * `protection` those of all requests, because its tokens are for the MCP endpoint alone:
   * the security of the API then reads the principal from `HttpRoutes.CurrentPrincipal`, or `credentials` makes what it
   * needs. Over stdio there are no headers.
   */
  readonly forwardHeaders?: ReadonlyArray<string> | undefined
  /**
   * Makes the headers of a call, with credentials for example: a value, a promise or an effect. It runs for each call,
   * and receives the request with its principal, which an effect also has as the service `McpRequest`. They replace
   * headers of the same name. The model receives the `message` of its failure, and of a rejection with an error that
   * clients may see (`HandlerContext`). A header with the name `authorization`, `cookie` or `host`, and those of the
   * connection and the body, are never arguments, also where the schema of an endpoint has them: their values come from
   * here or from `forwardHeaders`.
   */
  readonly credentials?:
    | ((endpoint: Endpoint, request: RequestContext) => Awaitable<Readonly<Record<string, string>>, E, R>)
    | undefined
  /**
   * The URL in front of the paths of the API, as handlers see it: `http://localhost` by default. Its path is the prefix
   * of the router, if the application serves the API under one: `http://localhost/api`.
   */
  readonly baseUrl?: string | undefined
  /** The most bytes of an answer: 262,144 by default. A larger answer is a failure, with its beginning. */
  readonly maxResultBytes?: number | undefined
  /**
   * The handling of a selected endpoint that cannot be a tool: it is left out with a warning in the log (`"warn"`, the
   * default), or it fails the layer (`"fail"`).
   */
  readonly onUnsupported?: "warn" | "fail" | undefined
}

/**
 * An annotation of an API, a group or an endpoint: hints that replace those that follow from the method, one by one.
 *
 * @example
 * const search = HttpApiEndpoint.post("search", "/search", { payload: Query, success: Hits })
 *   .annotate(HttpApiTools.Hints, { readOnlyHint: true })
 */
export const Hints: Context.Reference<ToolAnnotations> = /* @__PURE__ */ Context.Reference(
  "@skein/openapi/HttpApiTools/Hints",
  { defaultValue: (): ToolAnnotations => ({}) }
)

const matches = <Groups extends HttpApiGroup.Constraint>(
  selection: Selection<Groups>,
  endpoint: Endpoint
): boolean => {
  if (typeof selection === "function") return selection(endpoint)
  const { endpoints = [], groups = [] } = selection
  return (groups as ReadonlyArray<string>).includes(endpoint.group) ||
    (endpoints as ReadonlyArray<string>).includes(`${endpoint.group}.${endpoint.endpoint}`)
}

/** An endpoint with the function that calls it. */
interface Found {
  readonly shown: Endpoint
  readonly endpoint: HttpApiEndpoint.Top
  readonly isTopLevel: boolean
  /** The names of the headers that carry credentials, in lower case. */
  readonly credentialHeaders: ReadonlyArray<string>
  /** The successes with a body that is read as a whole, by status. */
  readonly successes: ReadonlyMap<number, ReadonlyArray<Schema.Top>>
  readonly call: (request: object) => Effect.Effect<HttpClientResponse, AnswerTooLarge | NoRoute, McpRequest>
}

type Executor = HttpClient.HttpClient.With<AnswerTooLarge | NoRoute, McpRequest>

const endpointsOf = Effect.fnUntraced(function*(api: HttpApi.Top, httpClient: Executor) {
  const client = (yield* HttpApiClient.makeWith(api, { httpClient })) as unknown as Readonly<
    Record<string, Found["call"] & Readonly<Record<string, Found["call"]>>>
  >
  const found: Array<Found> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, mergedAnnotations, middleware, successes }) => {
      const { identifier, method, path } = endpoint
      const schemes = [...middleware].flatMap((key) =>
        HttpApiMiddleware.isSecurity(key) ? Object.entries(key.security) : []
      )
      found.push({
        shown: {
          group: group.identifier,
          endpoint: identifier,
          method,
          path,
          annotations: mergedAnnotations,
          security: schemes.map(([name]) => name)
        },
        endpoint,
        isTopLevel: group.topLevel,
        credentialHeaders: [
          "authorization",
          "cookie",
          ...schemes.flatMap(([, scheme]) =>
            scheme._tag === "ApiKey" && scheme.in === "header" ? [scheme.key.toLowerCase()] : []
          )
        ],
        successes,
        call: group.topLevel ? client[identifier]! : client[group.identifier]![identifier]!
      })
    }
  })
  return found
})

const nameOf = ({ endpoint, isTopLevel, shown }: Found): string =>
  Context.getOrElse(
    endpoint.annotations,
    OpenApi.Identifier,
    () => isTopLevel ? shown.endpoint : `${shown.group}_${shown.endpoint}`
  )

/** The texts of an endpoint: its own annotations, since those of its group describe the group. */
const textsOf = ({ endpoint: { annotations }, shown }: Found, given: string | undefined) => {
  const summary = Context.getOrUndefined(annotations, OpenApi.Summary)
  const description = Context.getOrUndefined(annotations, OpenApi.Description)
  const isDeprecated = Context.getOrUndefined(annotations, OpenApi.Deprecated) === true
  const parts = [isDeprecated ? "Deprecated." : undefined, given ?? description ?? summary]
  const text = parts.filter((part) => part !== undefined).join(" ")
  return {
    title: Context.getOrUndefined(annotations, OpenApi.Title) ?? (description === undefined ? undefined : summary),
    description: text === "" ? `${shown.method} ${shown.path}` : text
  }
}

const toolOf = (
  found: Found,
  name: string,
  description: string | undefined,
  args: Arguments,
  outputSchema: (() => JsonObject) | undefined
): Tool.Tool<string, JsonObject, unknown> => ({
  name,
  options: {
    ...textsOf(found, description),
    annotations: { ...hintsOfMethods[found.shown.method], ...Context.get(found.shown.annotations, Hints) }
  },
  // The handler reads the arguments, because their schemas may need services.
  input: { jsonSchema: args.jsonSchema, compile: () => (value) => Result.succeed(value as JsonObject) },
  // The endpoint has encoded the JSON by its own schema.
  output: outputSchema && { jsonSchema: outputSchema, compile: () => Result.succeed }
})

// As for the arguments of other tools.
const maxProblemChars = 4096

/**
 * Registers the endpoints of an API as tools. The API must be served by the same router: add
 * `HttpApiBuilder.layer(api)` to the same application. A call of an endpoint that the router does not have is a result
 * with `isError`, and a warning in the log. The advice for status 401 depends on whether the call had credentials and
 * whether the options pass them on.
 *
 * For a server without HTTP, such as one for stdio, provide the routes of the API and `HttpRouter.layer`.
 *
 * Fails with `DefinitionError`: `DuplicateName` if another definition has the name of a tool; `InvalidSchema` if a
 * schema has no JSON Schema, and for an endpoint that cannot be a tool with `onUnsupported: "fail"`.
 *
 * @example
 * const Tools = HttpApiTools.layer(Api, {
 *   exclude: { groups: ["admin"], endpoints: ["users.remove"] },
 *   forwardHeaders: ["authorization"]
 * })
 */
export const layer = <
  Id extends string,
  Groups extends HttpApiGroup.Constraint,
  E extends HandlerError = never,
  R = never
>(
  api: HttpApi.HttpApi<Id, Groups>,
  options: Options<Groups, E, R> = {}
): Layer.Layer<
  never,
  DefinitionError,
  | Catalog
  | HttpRouter.HttpRouter
  | HandlerServices<R>
  | HandlerServices<HttpApiGroup.ClientServices<Groups>>
  | HandlerServices<HttpApiEndpoint.ServerServices<HttpApiGroup.Endpoints<Groups>>>
> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const { credentials, exclude, include, onUnsupported = "warn" } = options
    const forwarded = options.forwardHeaders?.map((name) => name.toLowerCase()) ?? []
    const client = makeInProcessClient(
      router,
      options.baseUrl ?? "http://localhost",
      options.maxResultBytes ?? defaultMaxResultBytes
    )
    const found = yield* endpointsOf(api as unknown as HttpApi.Top, client)
    for (const each of found) {
      const { shown } = each
      if (Context.get(shown.annotations, OpenApi.Exclude)) continue
      if (include !== undefined && !matches(include, shown)) continue
      if (exclude !== undefined && matches(exclude, shown)) continue
      const name = options.name?.(shown) ?? nameOf(each)
      const planned = plan(each, forwarded)
      if (Result.isFailure(planned)) {
        const place = `${shown.group}.${shown.endpoint}`
        const message = `The endpoint ${place} cannot be a tool: ${planned.failure}`
        if (onUnsupported === "warn") {
          yield* Logging.withheld(Effect.logWarning(message))
          continue
        }
        return yield* Effect.fail(
          new DefinitionError({
            reason: new InvalidSchema({ message, schema: "input" }),
            kind: "tool",
            definition: name
          })
        )
      }
      const { args, outputSchema } = planned.success
      const place = `${shown.method} ${shown.path}`
      const mayPassOn = credentials !== undefined ||
        each.credentialHeaders.some((header) => forwarded.includes(header))
      yield* Tool.add(toolOf(each, name, options.description?.(shown), args, outputSchema), (given) =>
        Effect.gen(function*() {
          const request = yield* McpRequest
          const made = credentials === undefined ? {} : yield* AsyncHandler.settle(() =>
            credentials(shown, request)
          )
          const headers = { ...forward(request, forwarded), ...lowerCased(made) }
          const parts = yield* Effect.result(args.read(given, headers))
          if (Result.isFailure(parts)) {
            const message = `Invalid arguments for tool ${name}: ${clip(parts.failure, maxProblemChars)}`
            // As for other tools: before 2025-11-25 invalid arguments are protocol errors.
            if (request.caller.revision < "2025-11-25") {
              return yield* McpError.invalidParams(message)
            }
            return Tool.result({ isError: true, content: message })
          }
          const answer = yield* Effect.result(
            Effect.provideService(
              each.call({ ...parts.success, responseMode: "response-only" }),
              CallHeaders,
              headers
            )
          )
          if (Result.isFailure(answer)) {
            return answer.failure instanceof NoRoute
              ? withoutRoute(shown.method, shown.path)
              : tooLarge(place, answer.failure, Object.keys(args.jsonSchema().properties ?? {}))
          }
          const { headers: answered, status } = answer.success
          const body = { bytes: new Uint8Array(yield* Effect.orDie(answer.success.arrayBuffer)), isCut: false }
          const isSent = each.credentialHeaders.some((header) => (headers[header] ?? "").trim() !== "")
          // A principal without credentials has signed in at the MCP endpoint, whose `protection` withholds its token.
          const isAnonymous = request.caller.principal === undefined
          return toResult(place, { body, headers: answered, status }, {
            hasOutputSchema: outputSchema !== undefined,
            credentials: isSent ? "sent" : mayPassOn && isAnonymous ? "absent" : "unforwarded",
            now: yield* Clock.currentTimeMillis
          })
        }) as Effect.Effect<Tool.Result<unknown>, E | HandlerError, R>)
    }
  })) as never

const lowerCased = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** The headers of the client's request that are passed on. */
const forward = ({ origin }: RequestContext, names: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(names.flatMap((name) => {
    const value = origin?.header?.(name)
    return value === undefined ? [] : [[name, value] as const]
  }))

/** Plans the tool of an endpoint. Fails with the reason why it cannot be one. */
const plan = ({ endpoint, successes }: Found, forwarded: ReadonlyArray<string>): Result.Result<
  { readonly args: Arguments; readonly outputSchema: (() => JsonObject) | undefined },
  string
> =>
  Result.try({
    try: () => ({ args: argumentsOf(endpoint, forwarded), outputSchema: outputSchemaOf(endpoint, successes) }),
    catch: (error) => {
      if (error instanceof Unsupported) return error.message
      throw error
    }
  })
