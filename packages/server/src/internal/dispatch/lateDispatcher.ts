/**
 * Loads the dispatcher, with the schemas of all messages: before a server is built, or on stdio after `initialize` was
 * answered. A process that a client starts is ready earlier, and the rest is loaded while the client reads the answer.
 */
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Catalog } from "../../Catalog.ts"
import type { Fibers } from "../base/fibers.ts"
import type { LogForwarder } from "../base/logs.ts"
import { internals } from "../catalog/catalogState.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import type { ServerDispatcher } from "./dispatcher.ts"
import { initialize } from "./initialize.ts"
import type { ServerDescription } from "./methodTable.ts"

/**
 * Whether a server answers `initialize` before its dispatcher is loaded. Only the process of a server on stdio does:
 * the first requests of other transports may come at once, and tests must not wait for a file.
 */
export const AnswersEarly: Context.Reference<boolean> = Context.Reference("@skein/server/internal/AnswersEarly", {
  defaultValue: () => false
})

const load = Effect.promise(() => import("./dispatcher.ts"))

/** Makes the dispatcher of a server. */
export const make = Effect.fnUntraced(function*(
  description: ServerDescription,
  catalog: Catalog["Service"],
  registry: SubscriptionRegistry,
  logs: LogForwarder | undefined,
  fibers: Fibers
): Effect.fn.Return<ServerDispatcher> {
  if (!(yield* AnswersEarly)) return (yield* load).make(description, catalog, registry, logs)
  const { extensions, inner, middleware } = catalog[internals]
  const answer = initialize(description, catalog, registry)
  let loaded: ServerDispatcher | undefined
  // Several requests may wait for it, and the first one makes the dispatcher.
  const loadOnce = Effect.map(load, ({ make }) => loaded ??= make(description, catalog, registry, logs))
  // It begins after the answer is written.
  const loadSoon = Effect.sync(() => void fibers.fork(Effect.andThen(Effect.yieldNow, Effect.asVoid(loadOnce))))
  const mayAnswer = ({ method }: RequestContext): boolean =>
    method === "initialize" && middleware.isEmpty && extensions.methods.size === 0
  inner.dispatch = (request) => Effect.flatMap(loadOnce, () => inner.dispatch!(request))
  return {
    dispatch: (request) => {
      if (loaded !== undefined) return loaded.dispatch(request)
      return mayAnswer(request)
        ? Effect.ensuring(answer(request), loadSoon)
        : Effect.flatMap(loadOnce, ({ dispatch }) => dispatch(request))
    },
    answerDefect: (request, reference, cause) => loaded?.answerDefect?.(request, reference, cause),
    inner: { call: (request) => Effect.flatMap(loadOnce, ({ inner }) => inner.call(request)) },
    hasMethod: (request) => loaded === undefined || loaded.hasMethod(request)
  }
})
