/**
 * Answers requests with pages, after the checks of an endpoint: for a port without an endpoint.
 */
import { logValue } from "@skein/protocol/Text"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { describeSource, Guards, type Sources, Warnings } from "../access/guards.ts"
import { makeIncomingBodies } from "../limits/incomingBodies.ts"
import { Load } from "../limits/load.ts"
import { type Options, resolve } from "../access/options.ts"
import { ForPage, type Pages } from "../access/protection.ts"
import { invalid, send } from "../messages/refusals.ts"
import { makeSlowReaders } from "../limits/slowReaders.ts"

const notFound = invalid(404, "Not Found: there is no such page here")
const failed = invalid(500, "Internal Server Error")

/**
 * Makes the function that checks Host and Origin of a request, and returns whether they are allowed. Otherwise it answers
 * the request. Each wrong name is logged once. `what` describes what is requested.
 */
export const makeSourceCheck = (
  options: Sources,
  context: Context.Context<never>,
  what: string,
  isAllowedHost: (request: HttpRequest) => boolean = () => false
): (request: HttpRequest, answer: HttpAnswer) => boolean => {
  const guards = new Guards(options)
  const warnings = new Warnings()
  return (request, answer) => {
    const isExempt = request.headFault === undefined && isAllowedHost(request)
    const refused = (isExempt ? undefined : guards.host(request)) ?? guards.origin(request)
    if (refused === undefined) return true
    const described = describeSource(refused, request)
    const text = `HTTP: refused a request for ${what} ${described}`
    if (described !== undefined && warnings.isNew(text)) Effect.runForkWith(context)(Effect.logWarning(text))
    send(answer, refused)
    return false
  }
}

/** Makes the function that answers each request of a port. It never throws. */
export const makePageHandler = (
  pages: Pages,
  options: Pick<Options, "allowedHosts" | "allowedOrigins">,
  context: Context.Context<never>
): (request: HttpRequest, answer: HttpAnswer) => void => {
  const resolved = resolve(options)
  const isAllowed = makeSourceCheck(resolved, context, "a page")
  const clock = Context.get(context, Clock.Clock)
  const load = new Load(resolved.maxRetainedBytes, {})
  const bodies = makeIncomingBodies(load)
  const slowReaders = makeSlowReaders(load, resolved.bounds, () => monotonicMillis(clock), context)
  return (request, answer) => {
    try {
      answer.watch?.(slowReaders, request)
      if (!isAllowed(request, answer)) return
      if (!pages.handle(new ForPage(request, bodies), answer)) send(answer, notFound)
    } catch (defect) {
      Effect.runForkWith(context)(Effect.logError(`failed to answer a request for ${logValue(request.path)}`, defect))
      if (!answer.isClosed) send(answer, failed)
    }
  }
}
