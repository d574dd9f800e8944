/**
 * The trace context of a call that creates a task. The task stores it, and each of its runs is linked to it.
 */
import * as TraceContext from "@skein/protocol/TraceContext"
import type { RequestContext } from "@skein/runtime/RequestContext"
import { type Catalog, requestServices } from "@skein/server/Catalog"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

/**
 * The `traceparent` of a call: that of the span in which the call is handled, or else the one that the client has sent
 * (`_meta`, or the headers of the HTTP request).
 */
export const traceparentOf = (
  catalog: Catalog["Service"],
  { origin, params }: RequestContext
): Effect.Effect<string | undefined> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    // The span in which the server was built is not that of a call.
    const outer = Context.getOrUndefined(requestServices(catalog), Tracer.ParentSpan)
    const own = span === undefined || span === outer ? undefined : TraceContext.formatParent(span)
    // A span without valid ids is not recorded.
    if (own !== undefined && TraceContext.parseParent(own) !== undefined) return Effect.succeed(own)
    const sent = TraceContext.fromParams(params)?.parent ??
      (origin?.header === undefined ? undefined : TraceContext.fromHeaders((name) => origin.header!(name))?.parent)
    return Effect.succeed(sent === undefined ? undefined : TraceContext.formatParent(sent))
  })
