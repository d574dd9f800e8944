/**
 * The middleware of single operations: calls of tools, reads of resources, prompts, and lists.
 *
 * It runs inside of the middleware of the dispatcher and outside of extensions, after the entry was found and its guard
 * was asked. It sees decoded params, and results before they are encoded for the revision of the caller.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import { compose, type Layer } from "@skein/runtime/Compose"
import { type Caller, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import { PlacedList } from "./placement.ts"

type Handled<A> = Effect.Effect<A, McpError, McpRequest>

/** The members that all operations have. */
export interface Operation {
  readonly caller: Caller
  readonly request: RequestContext
}

/** The hooks of one kind of operation, the first one outermost. Each handles an operation, or passes it on, perhaps changed. */
export class HookList<Op extends Operation, A> extends PlacedList<Layer<Op, Handled<A>>> {
  /** Runs an operation through the hooks. Requests in progress continue with the hooks that they started with. */
  run(operation: Op, last: (operation: Op) => Handled<A>): Handled<A> {
    return compose(this.all, last)(operation)
  }
}

/** Replaces the arguments in the params of an operation's request. */
export const withArguments = <Op extends Operation & { readonly arguments: JsonObject }>(
  operation: Op,
  args: JsonObject
): Op =>
  args === operation.arguments ? operation : {
    ...operation,
    arguments: args,
    request: operation.request.with({ params: { ...operation.request.params, arguments: args } })
  }

/** Provides the request of an operation to its handler, unless it is the one that was dispatched. */
export const provideRequest = <A>(
  dispatched: RequestContext,
  request: RequestContext,
  effect: Handled<A>
): Handled<A> => request === dispatched ? effect : Effect.provideService(effect, McpRequest, request)
