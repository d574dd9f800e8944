/**
 * Answers requests with pages, after the checks of an endpoint: for a port without an endpoint.
 */
import { logValue } from "@skein/protocol/Text"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HttpAnswer, HttpRequest } from "./adapter.ts"
import { describeSource, Guards } from "./guards.ts"
import { IncomingBodies } from "./incomingBodies.ts"
import { Load } from "./load.ts"
import { type Options, resolve } from "./options.ts"
import { ForPage, type Pages } from "./protection.ts"
import { invalid, send } from "./refusals.ts"
import { SlowReaders } from "./slowReaders.ts"

const notFound = invalid(404, "Not Found: there is no such page here")
const failed = invalid(500, "Internal Server Error")

/** Makes the function that answers each request of a port. It never throws. */
export const makePageHandler = (
  pages: Pages,
  options: Pick<Options, "allowedHosts" | "allowedOrigins">,
  context: Context.Context<never>
): (request: HttpRequest, answer: HttpAnswer) => void => {
  const resolved = resolve(options)
  const guards = new Guards(resolved)
  const clock = Context.get(context, Clock.Clock)
  const load = new Load(resolved.maxRetainedBytes, {})
  const bodies = new IncomingBodies(load)
  const slowReaders = new SlowReaders(load, resolved, () => monotonicMillis(clock), context)
  const log = (effect: Effect.Effect<void>) => void Effect.runForkWith(context)(effect)
  // A wrong name is the same for each request: it is logged once.
  const warned = new Set<string>()
  return (request, answer) => {
    try {
      answer.watch?.(slowReaders, request)
      const refused = guards.host(request) ?? guards.origin(request)
      if (refused === undefined) {
        if (!pages.handle(new ForPage(request, bodies), answer)) send(answer, notFound)
        return
      }
      const described = describeSource(refused, request)
      if (described !== undefined && !warned.has(described.option)) {
        warned.add(described.option)
        const { option, source } = described
        log(Effect.logWarning(`HTTP: refused a request for a page ${source}, which is not among the ${option}`))
      }
      send(answer, refused)
    } catch (defect) {
      log(Effect.logError(`failed to answer a request for ${logValue(request.path)}`, defect))
      if (!answer.isClosed) send(answer, failed)
    }
  }
}
