/**
 * From a request to its result: one table of handlers for all revisions.
 */
import * as Codec from "@skein/protocol/Codec"
import type * as Common from "@skein/protocol/Common"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Answer, Dispatcher, Exchange, McpRequest } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Catalog, Contents, Registry } from "../Catalog.ts"
import * as capabilities from "./capabilities.ts"
import { clip } from "./clip.ts"
import * as listing from "./listing.ts"

type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>
type Handler = (exchange: Exchange) => Handled<Answer>

/** What a server says of itself. */
export interface About {
  readonly serverInfo: Common.Implementation
  readonly instructions: string | undefined
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly pageSize: number
}

/** The dispatcher of a server. */
export const make = (about: About, catalog: Catalog["Service"]): Dispatcher<McpRequest> => {
  const handlers = new Map<string, Handler>()
  const { serverInfo } = about
  const instructions = about.instructions === undefined ? undefined : { instructions: about.instructions }

  /** In the request era each result says of which kind it is, and who answers. */
  const signed = (result: object): object => ({
    resultType: "complete",
    ...result,
    _meta: { ...(result as { readonly _meta?: Common.Meta })._meta, [RequestMeta.serverInfo]: serverInfo }
  })

  const finish = <P, R>(method: Method.RequestMethod<P, R>, result: R, exchange: Exchange): Answer => {
    const { revision } = exchange.caller
    const whole = Revision.era(revision) === "request" ? signed(result as object) as R : result
    const written = Codec.encodeResult(method, revision, whole)
    if (Result.isSuccess(written)) return written.success
    throw new Error(`The result of ${method.name} cannot be said in ${revision}: ${written.failure.message}`)
  }

  const handle = <P>(
    method: Method.RequestMethod<P, unknown>,
    run: (params: P, exchange: Exchange) => Handled<Answer>
  ): void => {
    handlers.set(method.name, (exchange) => {
      const params = Codec.decodeParams(method, exchange.caller.revision, exchange.params)
      return Result.isFailure(params)
        ? Effect.fail(McpError.invalidParams(`Invalid params: ${params.failure}`))
        : run(params.success, exchange)
    })
  }

  const on = <P, R>(method: Method.RequestMethod<P, R>, run: (params: P, exchange: Exchange) => Handled<R>): void =>
    handle(
      method,
      (params, exchange) => Effect.map(run(params, exchange), (result) => finish(method, result, exchange))
    )

  const list = <R>(
    method: Method.RequestMethod<Common.PaginatedRequestParams, R>,
    key: keyof R & string,
    registry: Registry<{ readonly definition: unknown }>
  ): void => {
    const pages = listing.make(registry, key, about.pageSize)
    handle(
      method,
      ({ cursor }, exchange) => pages(cursor, exchange.caller.revision, (page) => finish(method, page as R, exchange))
    )
  }

  const read = (uri: string): Handled<Contents> => {
    const resource = catalog.resources.get(uri)
    if (resource !== undefined) return resource.read
    for (const [, template] of catalog.templates.sorted) {
      const reading = template.match(uri)
      if (reading !== undefined) return reading
    }
    return Effect.fail(McpError.resourceNotFound(uri))
  }

  on(Method.Ping, () => Effect.succeed({}))
  // Its params were read when the session was opened.
  handlers.set(Method.Initialize.name, (exchange) =>
    Effect.sync(() =>
      finish(Method.Initialize, {
        protocolVersion: exchange.caller.revision,
        capabilities: capabilities.of(catalog),
        serverInfo,
        ...instructions
      }, exchange)
    ))
  on(Method.Discover, () =>
    Effect.sync(() => ({
      supportedVersions: about.revisions,
      capabilities: capabilities.of(catalog),
      ...instructions
    })))
  on(Method.CallTool, (params, exchange) => {
    const tool = catalog.tools.get(params.name)
    return tool === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
      : tool.call(params.arguments ?? {}, exchange)
  })
  on(Method.GetPrompt, (params) => {
    const prompt = catalog.prompts.get(params.name)
    return prompt === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
      : prompt.get(params.arguments ?? {})
  })
  on(Method.ReadResource, ({ uri }) => Effect.map(read(uri), (contents) => ({ contents })))
  list(Method.ListTools, "tools", catalog.tools)
  list(Method.ListResources, "resources", catalog.resources)
  list(Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  list(Method.ListPrompts, "prompts", catalog.prompts)

  return (exchange) => {
    const method = Method.request(exchange.method, exchange.caller.revision)
    const handler = method === undefined || !capabilities.offered(catalog, method)
      ? undefined
      : handlers.get(method.name)
    return handler === undefined ? Effect.fail(McpError.methodNotFound(exchange.method)) : handler(exchange)
  }
}
