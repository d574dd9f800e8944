/**
 * Progress of the request that is being handled.
 */
import { McpRequest, type Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"

/**
 * Tells the client how far the request has come, if it asked to be told. `progress` must grow with every report: one that does
 * not is left out, as is any after the end. `message` needs 2025-03-26. Waits while the client is slow to read.
 */
export const report = (progress: Progress): Effect.Effect<void, never, McpRequest> =>
  Effect.flatMap(McpRequest, (request) => request.progress(progress))
