/**
 * The trace context of the request that is being handled.
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
