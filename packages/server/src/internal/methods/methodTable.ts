/**
 * What the methods of a server have in common: their params are read and their results written in the caller's revision.
 */
import * as Codec from "@skein/protocol/Codec"
import type * as Common from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hint } from "../../Caching.ts"
import type { Catalog, Handled } from "../../Catalog.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"

/** What handles one method. */
export type Handler = (exchange: RequestContext) => Handled<Answer>

/** What a server says of itself. */
export interface ServerDescription {
  readonly serverInfo: Common.Implementation
  readonly instructions: string | undefined
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly pageSize: number
  /** The caching hints of results that have none of their own, by their method. */
  readonly caching?: ReadonlyMap<string, Hint> | undefined
}

/** The table of methods, while it is filled. */
export class MethodTable {
  readonly about: ServerDescription
  readonly catalog: Catalog["Service"]
  readonly hub: SubscriptionRegistry
  readonly handlers = new Map<string, Handler>()

  constructor(about: ServerDescription, catalog: Catalog["Service"], hub: SubscriptionRegistry) {
    this.about = about
    this.catalog = catalog
    this.hub = hub
  }

  /** A method whose answer is given as it is. Params that are `plain` are valid, and not looked at closer. */
  handle<P>(
    method: Method.RequestMethod<P, unknown>,
    run: (params: P, exchange: RequestContext) => Effect.Effect<Answer, McpError.McpError, McpRequest>,
    plain?: (params: JsonObject | undefined) => params is P & JsonObject
  ): void {
    this.handlers.set(method.name, reading(method, run, plain))
  }

  /** A method with a result of the model. */
  on<P, R>(
    method: Method.RequestMethod<P, R>,
    run: (params: P, exchange: RequestContext) => Handled<Codec.Writable<R>>,
    plain?: (params: JsonObject | undefined) => params is P & JsonObject
  ): void {
    this.handlers.set(method.name, this.handler(method, run, plain))
  }

  /** What handles such a method. */
  handler<P, R>(
    method: Method.RequestMethod<P, R>,
    run: (params: P, exchange: RequestContext) => Handled<Codec.Writable<R>>,
    plain?: (params: JsonObject | undefined) => params is P & JsonObject
  ): Handler {
    return reading(
      method,
      (params, exchange) => Effect.map(run(params, exchange), (result) => this.finish(method, result, exchange)),
      plain
    )
  }

  /** Writes a result. One that the revision cannot carry is a defect. */
  finish<P, R>(method: Method.RequestMethod<P, R>, result: Codec.Writable<R>, exchange: RequestContext): Answer {
    const { revision } = exchange.caller
    const whole = Revision.era(revision) === "request" ? this.signed(this.#hinted(method.name, result)) as R : result
    const written = Codec.encodeResult(method, revision, whole)
    if (Result.isSuccess(written)) return written.success
    throw new Error(`The result of ${method.name} cannot be said in ${revision}: ${written.failure.message}`)
  }

  #hinted(method: string, result: unknown): object {
    const hint = this.about.caching?.get(method)
    return hint === undefined ? result as object : { ...hint, ...result as object }
  }

  /** In the request era each result says of which kind it is, and who answers. */
  signed(result: object): JsonObject {
    return {
      resultType: "complete",
      ...result,
      _meta: {
        ...(result as { readonly _meta?: Common.Meta | undefined })._meta,
        [RequestMeta.serverInfo]: this.about.serverInfo
      }
    }
  }
}

/** Reads the params, or refuses them. */
const reading = <P>(
  method: Method.RequestMethod<P, unknown>,
  run: (params: P, exchange: RequestContext) => Handled<Answer>,
  plain?: (params: JsonObject | undefined) => params is P & JsonObject
): Handler =>
(exchange) => {
  if (plain?.(exchange.params) === true) return run(exchange.params, exchange)
  const params = Codec.decodeParams(method, exchange.caller.revision, exchange.params)
  return Result.isFailure(params)
    ? Effect.fail(McpError.invalidParams(`Invalid params: ${params.failure}`))
    : run(params.success, exchange)
}
