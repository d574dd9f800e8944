/**
 * The trace context of the request that is being handled, and the span around an HTTP request.
 */
import type { TraceContext } from "@skein/protocol/TraceContext"
import * as Context from "effect/Context"

/**
 * The trace context that arrived with the request that is being handled. A server with telemetry provides it to its
 * handlers, and clients that they call read it. `undefined` outside of a request.
 */
export const Remote: Context.Reference<TraceContext | undefined> = Context.Reference<TraceContext | undefined>(
  "@skein/runtime/Trace/Remote",
  { defaultValue: () => undefined }
)

/**
 * Finds services for the handlers of an HTTP request when its head has arrived: the span around it, for example, in a
 * program whose tracer is not Effect's. An adapter that supplies the services of a request itself takes precedence.
 */
export const Around: Context.Reference<(() => Context.Context<never>) | undefined> = Context.Reference<
  (() => Context.Context<never>) | undefined
>("@skein/runtime/Trace/Around", { defaultValue: () => undefined })
