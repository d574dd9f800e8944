/**
 * The trace that the code that runs belongs to, as far as it came from outside.
 */
import type { TraceContext } from "@skein/protocol/TraceContext"
import * as Context from "effect/Context"

/**
 * What came with the request that is being handled: a server with telemetry provides it to its handlers, and what they call on finds it.
 * `undefined` outside of a request.
 */
export const Remote: Context.Reference<TraceContext | undefined> = Context.Reference<TraceContext | undefined>(
  "@skein/runtime/Trace/Remote",
  { defaultValue: () => undefined }
)
