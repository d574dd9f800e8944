/**
 * The table of methods: decodes the params and encodes the results in the revision of the caller.
 */
import * as Codec from "@skein/protocol/Codec"
import type { Implementation } from "@skein/protocol/Implementation"
import type { Meta } from "@skein/protocol/Message"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hint } from "../../Caching.ts"
import type { Catalog, Handled } from "../../Catalog.ts"
import { withFailureOf } from "../handlers/handlerError.ts"
import { offered } from "../subscriptions/capabilities.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"

/** Handles the requests of one method. */
export type Handler = (request: RequestContext) => Handled<Answer>

/** The description of a server. */
export interface ServerDescription {
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly pageSize: number
  /** The default caching hints of results, by method. */
  readonly caching?: ReadonlyMap<string, Hint> | undefined
}

/** The methods of one server. Each part of the server adds its own. */
export class MethodTable {
  readonly description: ServerDescription
  readonly catalog: Catalog["Service"]
  readonly subscriptions: SubscriptionRegistry
  readonly handlers = new Map<string, Handler>()

  constructor(
    description: ServerDescription,
    catalog: Catalog["Service"],
    subscriptions: SubscriptionRegistry
  ) {
    this.description = description
    this.catalog = catalog
    this.subscriptions = subscriptions
  }

  /** Adds a method whose results are encoded. */
  add<P, R>(
    method: Method.RequestMethod<P, R>,
    run: (params: P, request: RequestContext) => Handled<Codec.Writable<R>>
  ): void {
    this.set(method, this.encoding(method, run))
  }

  /** Adds the handler of a method. The method does not exist while the server does not declare its capability. */
  set(method: Method.AnyRequest, handler: Handler): void {
    this.handlers.set(
      method.name,
      (request) =>
        offered(this.catalog, method) ? handler(request) : Effect.fail(McpError.methodNotFound(request.method))
    )
  }

  /** Makes a handler that decodes the params and encodes the result. */
  encoding<P, R>(
    method: Method.RequestMethod<P, R>,
    run: (params: P, request: RequestContext) => Handled<Codec.Writable<R>>
  ): Handler {
    return decoding(
      method,
      (params, request) => Effect.map(run(params, request), (result) => this.encodeResult(method, result, request))
    )
  }

  /** Encodes a result. A result that the revision cannot carry is a defect. */
  encodeResult<P, R>(method: Method.RequestMethod<P, R>, result: Codec.Writable<R>, request: RequestContext): Answer {
    const { revision } = request.caller
    const complete = Revision.era(revision) === "stateless"
      ? this.completeResult(this.#withHint(method.name, result)) as R
      : result
    const encoded = Codec.encodeResult(method, revision, complete)
    if (Result.isSuccess(encoded)) return withFailureOf(result as object, encoded.success)
    throw new Error(`the result of ${method.name} has no form in ${revision}: ${encoded.failure.message}`)
  }

  #withHint(method: string, result: unknown): object {
    const hint = this.description.caching?.get(method)
    return hint === undefined ? result as object : { ...hint, ...result as object }
  }

  /** Adds `resultType` and the description of the server, which every result of the stateless revision has. */
  completeResult(result: object): JsonObject {
    return {
      resultType: "complete",
      ...result,
      _meta: {
        ...(result as { readonly _meta?: Meta | undefined })._meta,
        [RequestMeta.serverInfo]: this.description.serverInfo
      }
    }
  }
}

/** Makes a handler that decodes the params, or answers with `-32602`. */
export const decoding = <P>(
  method: Method.RequestMethod<P, unknown>,
  run: (params: P, request: RequestContext) => Handled<Answer>
): Handler =>
(request) => {
  const params = Codec.decodeParams(method, request.caller.revision, request.params)
  return Result.isFailure(params)
    ? Effect.fail(McpError.invalidParams(`Invalid params: ${params.failure}`))
    : run(params.success, request)
}
